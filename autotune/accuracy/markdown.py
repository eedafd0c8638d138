"""The report of `autotune accuracy` as markdown: figures by source, sweep and axis, worst rows, what was skipped."""

from collections.abc import Iterable, Iterator, Sequence

from autotune.accuracy.report import AccuracyReport
from autotune.accuracy.wording import (
    FIGURE_TITLES,
    WORST_TITLES,
    correlation,
    figure_lines,
    percent,
    sentences,
    skipped_groups,
    worst_memory_cells,
    worst_time_cells,
)
from autotune.units import format_bytes


def accuracy_markdown(report: AccuracyReport, *, plots: Sequence[str] = ()) -> str:
    """The whole file. plots: paths of pictures, relative to it."""
    return "\n".join(_lines(report, plots)) + "\n"


def _lines(report: AccuracyReport, plots: Sequence[str]) -> Iterator[str]:
    yield "# How well the cost model predicts runs that others measured"
    yield ""
    yield "An error is predicted over measured, less one. Sweeps are runs that differ in their layouts alone, at least"
    yield "five of them; regret is how much slower the layout ranked first is than the best one that was measured."
    yield "False fits are runs that died of memory and were said to fit, as a share of all that died."
    yield ""
    yield from (f"- {sentence}" for sentence in sentences(report))
    yield ""
    yield from _table(FIGURE_TITLES, figure_lines(report))
    for plot in plots:
        yield from ("", f"![{plot}]({plot})")
    yield from _sweeps(report)
    yield from _axes(report)
    yield from _worst(report)
    yield from _assumed(report)
    yield from _skipped(report)


def _sweeps(report: AccuracyReport) -> Iterator[str]:
    if not report.summary.all.sweeps:
        return
    yield from ("", "## Sweeps", "")
    titles = (
        "source",
        "model",
        "sequence",
        "batch",
        "GPUs",
        "layouts",
        "Spearman",
        "Kendall",
        "regret",
        "first pick",
        "best",
    )
    yield from _table(
        titles,
        [
            (
                sweep.key.source,
                sweep.key.model,
                str(sweep.key.sequence_length),
                str(sweep.key.global_batch_size),
                f"{sweep.key.gpus} {sweep.key.gpu}",
                str(sweep.layouts),
                correlation(sweep.spearman),
                correlation(sweep.kendall),
                percent(sweep.regret),
                sweep.first_pick,
                sweep.best,
            )
            for sweep in report.summary.all.sweeps
        ],
    )


def _axes(report: AccuracyReport) -> Iterator[str]:
    if not report.axes:
        return
    yield from ("", "## Errors by axis", "")
    titles = ("axis", "value", "rows", "time MAPE", "bias", "memory MAPE", "bias")
    yield from _table(
        titles,
        [
            (
                errors.axis,
                str(errors.value).lower() if isinstance(errors.value, bool) else str(errors.value),
                str(errors.rows),
                percent(errors.time_mape),
                percent(errors.time_bias, signed=True),
                percent(errors.memory_mape),
                percent(errors.memory_bias, signed=True),
            )
            for errors in report.axes
        ],
    )


def _worst(report: AccuracyReport) -> Iterator[str]:
    """The part named is the one whose scale would explain the errors of its source best: a hint and no proof."""
    if report.worst_times:
        yield from ("", "## Worst step times", "")
        yield from _table(WORST_TITLES, [worst_time_cells(suspicion) for suspicion in report.worst_times])
    if report.worst_memory:
        yield from ("", "## Worst peaks", "")
        yield from _table(WORST_TITLES, [worst_memory_cells(suspicion) for suspicion in report.worst_memory])
    if report.missed:
        yield from ("", f"## Ran out of memory and was said to fit ({len(report.missed)})", "")
        rows = [
            (
                f"{row.run.source}/{row.run.run_id}",
                row.run.layout.key,
                format_bytes(row.device_bytes),
                format_bytes(row.limit_bytes),
            )
            for row in report.missed
        ]
        yield from _table(("run", "layout", "predicted", "usable"), rows)


def _assumed(report: AccuracyReport) -> Iterator[str]:
    counts: dict[tuple[str, str], int] = {}
    for row in (*report.rows, *report.taken):
        for note in row.run.notes:
            counts[row.run.source, note] = counts.get((row.run.source, note), 0) + 1
    if not counts:
        return
    yield from ("", "## What was assumed or passed over", "")
    yield from _table(
        ("source", "runs", "note"), [(source, str(count), note) for (source, note), count in counts.items()]
    )


def _skipped(report: AccuracyReport) -> Iterator[str]:
    if not report.skipped:
        return
    yield from ("", f"## Skipped ({len(report.skipped)})", "")
    yield from _table(
        ("source", "runs", "reason", "which"),
        [
            (group.source, str(len(group.run_ids)), group.reason, ", ".join(group.run_ids))
            for group in skipped_groups(report.skipped)
        ],
    )


def _table(titles: Sequence[str], lines: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(titles)} |"
    yield f"|{'---|' * len(titles)}"
    for line in lines:
        yield f"| {' | '.join(cell.replace('|', '&#124;') for cell in line)} |"
