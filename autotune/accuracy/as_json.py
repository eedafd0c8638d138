"""The JSON of `autotune accuracy`: {"all": {…}, "sources": {name: {…}}}."""

from autotune.accuracy.summary import Figures, Summary

JsonFigures = dict[str, float | int | None]


def accuracy_json(summary: Summary) -> dict[str, object]:
    """Plain data. An error or share is a fraction of 1; what cannot be scored is null."""
    sources: dict[str, JsonFigures] = {name: _figures(figures) for name, figures in summary.sources.items()}
    return {"all": _figures(summary.all), "sources": sources}


def _figures(figures: Figures) -> JsonFigures:
    return {
        "rows": figures.rows,
        "step_time_mape": figures.step_time_mape,
        "step_time_bias": figures.step_time_bias,
        "spearman_mean": figures.spearman_mean,
        "regret_mean": figures.regret_mean,
        "regret_worst": figures.regret_worst,
        "memory_mape": figures.memory_mape,
        "oom_f1": figures.oom.f1,
        "oom_false_fits": figures.oom.false_fits,
        "skipped": figures.skipped,
    }
