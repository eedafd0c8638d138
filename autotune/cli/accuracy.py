"""`autotune accuracy`: how well the cost model predicts runs that others measured."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
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
from autotune.cli.errors import ends_with_exit_code
from autotune.cli.options import OutputJson
from autotune.errors import EXIT_YES
from autotune.report.terminal import stdout_console
from autotune.workflow.accuracy import AccuracyRequest, write_accuracy_files
from autotune.workflow.accuracy import accuracy as run_accuracy


@ends_with_exit_code
def accuracy(
    *,
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FILE.csv ...]", help="Measured runs. Default: those that autotune ships."),
    ] = None,
    calibrate: Annotated[
        int, typer.Option("--calibrate", min=0, help="Fit on the first K layouts of each sweep, score the rest.")
    ] = 0,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the whole report as markdown.", show_default=False)
    ] = None,
    plots: Annotated[
        Path | None, typer.Option("--plots", help="Write pictures into this folder.", show_default=False)
    ] = None,
    output_json: OutputJson = False,
) -> int:
    """Predict runs that others measured, and score the predictions."""
    report = run_accuracy(AccuracyRequest(files=tuple(files or ()), calibrate=calibrate))
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
