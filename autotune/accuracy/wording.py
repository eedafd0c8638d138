"""Words and tables that the terminal and the markdown of an accuracy report share."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from autotune.accuracy.blame import Suspicion
from autotune.accuracy.report import AccuracyReport
from autotune.accuracy.summary import Figures
from autotune.spec.measured import SkippedRun
from autotune.units import format_bytes, format_seconds

NOTHING: Final = "–"

FIGURE_TITLES: Final = (
    "source", "rows", "skipped", "time MAPE", "median", "bias", "Spearman", "Kendall", "sweeps", "regret mean", "worst",
    "memory MAPE", "bias", "OOM precision", "recall", "F1", "false fits",
)  # fmt: skip
WORST_TITLES: Final = ("run", "layout", "measured", "predicted", "error", "likely wrong")


@dataclass(frozen=True, kw_only=True, slots=True)
class SkippedGroup:
    """Rows of one source that share a reason."""

    source: str
    reason: str
    run_ids: tuple[str, ...]


def percent(share: float | None, *, signed: bool = False) -> str:
    """0.123 -> "12.3 %"."""
    if share is None:
        return NOTHING
    return f"{share * 100:+.1f} %" if signed else f"{share * 100:.1f} %"


def correlation(value: float | None) -> str:
    """0.9234 -> "0.92"."""
    return NOTHING if value is None else f"{value:.2f}"


def figure_cells(name: str, figures: Figures) -> tuple[str, ...]:
    """One line of the table by source, in the order of FIGURE_TITLES."""
    return (
        name,
        str(figures.rows),
        str(figures.skipped),
        percent(figures.step_time_mape),
        percent(figures.step_time_median),
        percent(figures.step_time_bias, signed=True),
        correlation(figures.spearman_mean),
        correlation(figures.kendall_mean),
        str(len(figures.sweeps)) if figures.sweeps else NOTHING,
        percent(figures.regret_mean),
        percent(figures.regret_worst),
        percent(figures.memory_mape),
        percent(figures.memory_bias, signed=True),
        percent(figures.oom.precision if figures.oom.caught + figures.oom.missed else None),
        percent(figures.oom.recall),
        correlation(figures.oom.f1),
        percent(figures.oom.false_fits),
    )


def figure_lines(report: AccuracyReport) -> list[tuple[str, ...]]:
    """All lines of the table by source; the last is of all."""
    lines = [figure_cells(name, figures) for name, figures in report.summary.sources.items()]
    return [*lines, figure_cells("all", report.summary.all)]


def sentences(report: AccuracyReport) -> list[str]:
    """What the table means, in words."""
    whole = report.summary.all
    found = [
        f"{whole.rows} runs of {len(report.files)} files scored: {whole.timed} step times, {whole.weighed} peaks, "
        f"{whole.oom.labels} labels of running out of memory; {whole.skipped} runs are listed as skipped."
    ]
    if whole.coverage is not None:
        found.append(
            f"Of the {whole.described} runs whose batch, micro-batch and recompute are stated, "
            f"{percent(whole.coverage)} are scored{' or were fitted to' if report.calibrate else ''}."
        )
    found.append(
        "The time MAPE of all is the median over the sources"
        + (f"; over rows it is {percent(whole.step_time_mape_rows)}." if whole.step_time_mape_rows is not None else ".")
    )
    if report.calibrate:
        found.append(
            f"Of each sweep the first {report.calibrate} layouts that a search would have run were used to fit the "
            f"factors; these {len(report.taken)} runs are not scored."
        )
    return found


def worst_time_cells(suspicion: Suspicion) -> tuple[str, ...]:
    """One line of the worst step times, in the order of WORST_TITLES."""
    row = suspicion.row
    return _worst_cells(
        suspicion, format_seconds(row.measured_step_time_s or 0.0), format_seconds(row.step_time_s)
    )  # fmt: skip


def worst_memory_cells(suspicion: Suspicion) -> tuple[str, ...]:
    """One line of the worst peaks, in the order of WORST_TITLES."""
    row = suspicion.row
    return _worst_cells(
        suspicion, format_bytes(row.measured_bytes or 0.0), format_bytes(row.like_with_like_bytes or 0.0)
    )  # fmt: skip


def skipped_groups(skipped: Iterable[SkippedRun]) -> list[SkippedGroup]:
    """Skipped rows by source and reason, in the order in which they were met."""
    groups: dict[tuple[str, str], list[str]] = {}
    for run in skipped:
        groups.setdefault((run.source, run.reason), []).append(run.run_id)
    return [SkippedGroup(source=source, reason=reason, run_ids=tuple(ids)) for (source, reason), ids in groups.items()]


def _worst_cells(suspicion: Suspicion, measured: str, predicted: str) -> tuple[str, ...]:
    row = suspicion.row
    part = suspicion.part.replace("_", " ")
    return (
        f"{row.run.source}/{row.run.run_id}",
        row.run.layout.key,
        measured,
        predicted,
        percent(suspicion.error, signed=True),
        f"{part} (× {suspicion.scale:.2f})" if suspicion.scale > 0 else part,
    )
