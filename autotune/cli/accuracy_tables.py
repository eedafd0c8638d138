"""The answer of `autotune accuracy` as tables or JSON."""

import json
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from autotune.accuracy.as_json import accuracy_json
from autotune.accuracy.report import AccuracyReport
from autotune.accuracy.wording import (
    FIGURE_TITLES,
    WORST_TITLES,
    figure_lines,
    sentences,
    skipped_groups,
    worst_memory_cells,
    worst_time_cells,
)
from autotune.cli.console import stderr_console, write_line
from autotune.errors import EXIT_YES
from autotune.report.terminal import stdout_console
from autotune.workflow.accuracy import AccuracyRequest, write_accuracy_files
from autotune.workflow.accuracy import accuracy as run_accuracy


def answer(
    files: tuple[Path, ...], *, calibrate: int, output: Path | None, plots: Path | None, output_json: bool
) -> int:
    """Do what the command asks, print it, and return its exit code."""
    report = run_accuracy(AccuracyRequest(files=files, calibrate=calibrate))
    written = write_accuracy_files(report, markdown=output, plots=plots)
    if output_json:
        write_line(json.dumps(accuracy_json(report.summary), indent=2, allow_nan=False))
    else:
        _print_report(report, stdout_console())
    for path in written:
        stderr_console().print(Text(str(path)), soft_wrap=True)
    return EXIT_YES


def _print_report(report: AccuracyReport, console: Console) -> None:
    _print_table(console, "", FIGURE_TITLES, figure_lines(report))
    for sentence in sentences(report):
        console.print(Text(sentence))
    if report.worst_times:
        _print_table(console, "worst step times", WORST_TITLES, [worst_time_cells(row) for row in report.worst_times])
    if report.worst_memory:
        _print_table(console, "worst peaks", WORST_TITLES, [worst_memory_cells(row) for row in report.worst_memory])
    groups = [(group.source, str(len(group.run_ids)), group.reason) for group in skipped_groups(report.skipped)]
    if groups:
        _print_table(console, "skipped", ("source", "runs", "reason"), groups)


def _print_table(console: Console, title: str, titles: tuple[str, ...], lines: Sequence[tuple[str, ...]]) -> None:
    """Every cell is a Text, so that no name from a file is read as markup."""
    table = Table(title=title or None, title_justify="left", box=None, pad_edge=False)
    for place, name in enumerate(titles):
        table.add_column(name, overflow="fold", justify="left" if place == 0 else "right")
    for line in lines:
        table.add_row(*(Text(cell) for cell in line))
    console.print(table)
    console.print()
