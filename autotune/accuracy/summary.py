"""Figures of accuracy: of each source, and of all together."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from autotune.accuracy.prediction import PredictedRun
from autotune.accuracy.scores import (
    Confusion,
    bias,
    confusion,
    mape,
    mean_of,
    median_error,
    median_of,
)
from autotune.accuracy.sweeps import SweepScore, score_sweeps
from autotune.spec.measured import SkippedRun


@dataclass(frozen=True, kw_only=True, slots=True)
class Figures:
    """None where there is nothing to score.

    rows: predicted and compared with something; timed, weighed: with a step time, with a peak; skipped: not predicted;
    described, described_scored: rows whose batch, micro-batch and recompute are stated, and those of them scored.
    step_time_mape of all sources together is the median over sources, so that a long file does not outvote the others;
    step_time_mape_rows is the mean over rows.
    """

    rows: int
    timed: int
    weighed: int
    skipped: int
    described: int
    described_scored: int
    step_time_mape: float | None
    step_time_mape_rows: float | None
    step_time_median: float | None
    step_time_bias: float | None
    sweeps: tuple[SweepScore, ...]
    spearman_mean: float | None
    kendall_mean: float | None
    regret_mean: float | None
    regret_worst: float | None
    memory_mape: float | None
    memory_bias: float | None
    oom: Confusion

    @property
    def coverage(self) -> float | None:
        """Rows scored, of those with batch, micro-batch and recompute stated."""
        return self.described_scored / self.described if self.described else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    """The figures by source, and of all."""

    all: Figures
    sources: dict[str, Figures]


def summarise(
    rows: Sequence[PredictedRun], skipped: Sequence[SkippedRun], taken: Sequence[PredictedRun] = ()
) -> Summary:
    """Figures of these predictions; `skipped` are counted, and in the coverage.

    taken: rows that a calibration was fitted to; they are in no figure but the coverage.
    """
    names = sorted({row.run.source for row in (*rows, *taken)} | {run.source for run in skipped})
    sources = {
        name: _figures(
            [row for row in rows if row.run.source == name],
            [run for run in skipped if run.source == name],
            [row for row in taken if row.run.source == name],
        )
        for name in names
    }
    medians = [figures.step_time_mape for figures in sources.values()]
    together = replace(_figures(rows, skipped, taken), step_time_mape=median_of(medians))
    return Summary(all=together, sources=sources)


def is_scored(row: PredictedRun) -> bool:
    """Whether there is anything to compare the prediction with."""
    return row.time_error is not None or row.memory_error is not None or row.run.oom is not None


def _figures(rows: Sequence[PredictedRun], skipped: Sequence[SkippedRun], taken: Sequence[PredictedRun]) -> Figures:
    time = [row.time_error for row in rows if row.time_error is not None]
    memory = [row.memory_error for row in rows if row.memory_error is not None]
    sweeps = score_sweeps(rows)
    regrets = [sweep.regret for sweep in sweeps]
    labelled = [(row.out_of_memory, row.run.oom) for row in rows if row.run.oom is not None]
    described = [row for row in (*rows, *taken) if row.run.fully_described]
    by_rows = mape(time)
    return Figures(
        rows=sum(is_scored(row) for row in rows),
        timed=len(time),
        weighed=len(memory),
        skipped=len(skipped),
        described=len(described) + sum(run.fully_described for run in skipped),
        described_scored=sum(is_scored(row) for row in described),
        step_time_mape=by_rows,
        step_time_mape_rows=by_rows,
        step_time_median=median_error(time),
        step_time_bias=bias(time),
        sweeps=tuple(sweeps),
        spearman_mean=mean_of([sweep.spearman for sweep in sweeps]),
        kendall_mean=mean_of([sweep.kendall for sweep in sweeps]),
        regret_mean=mean_of(regrets),
        regret_worst=max(regrets, default=None),
        memory_mape=mape(memory),
        memory_bias=bias(memory),
        oom=confusion([said for said, _ in labelled], [died for _, died in labelled]),
    )
