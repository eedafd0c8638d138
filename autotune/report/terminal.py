"""Reports on a terminal. Every value is a Text, so that no name from a file is read as markup."""

import textwrap
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.text import Text

from autotune.report.ranked import RankedLayout, Report
from autotune.report.wording import (
    CELL_TITLES,
    Part,
    calibration_sentence,
    export_command,
    failures,
    marks,
    memory_parts,
    memory_rows,
    nothing_sentence,
    printable,
    question,
    ranked_cells,
    rejection_sentence,
    space_sentence,
    speed_rows,
    time_parts,
    verdict_sentence,
    winner_sentence,
)
from autotune.spec.verdict import Verdict
from autotune.spec.workload import Problem
from autotune.units import format_bytes, format_seconds

_STYLES = {
    Verdict.FITS: "",
    Verdict.BORDERLINE: "yellow",
    Verdict.DOES_NOT_FIT: "red",
    Verdict.INVALID: "red",
    Verdict.OUT_OF_MEMORY: "red",
    Verdict.FAILED: "red",
}


def print_report(report: Report, console: Console | None = None) -> None:
    """The answer of `tune` on stdout, or on the given console."""
    console = console or stdout_console()
    _say(console, question(report.problem, report.engine), style="bold")
    console.print()
    if report.layouts:
        for line in ranked_lines(report, console.width):
            console.print(line, overflow="fold")
        limit = format_bytes(report.limit_bytes)
        _say(console, f"peak memory: of the fullest pipeline stage; limit: {limit} a process", style="dim")
        console.print()
    _print_answer(console, report)
    _print_space(console, report)
    _print_run(console, report)


def print_check(
    ranked: RankedLayout,
    problem: Problem,
    engine: str,
    *,
    warnings: Iterable[str] = (),
    notes: Iterable[str] = (),
    console: Console | None = None,
) -> None:
    """The answer of `check` on stdout, or on the given console."""
    console = console or stdout_console()
    _say(console, question(problem, engine), style="bold")
    _say(console, ranked.key)
    _say(console, f"verdict: {verdict_sentence(ranked)}", style=f"bold {_STYLES[ranked.verdict]}".strip())
    for reason in ranked.reasons:
        _item(console, f"{reason.code}: {reason.message}")
    _warn(console, warnings)
    for note in notes:
        _say(console, f"note: {note}")
    if ranked.memory_bytes:
        title = (f"memory of the fullest stage ({ranked.fullest_stage})", "size")
        _print_parts(console, title, memory_parts(ranked), memory_rows(ranked))
    if ranked.time_s:
        _print_parts(console, ("time of a step", "time"), time_parts(ranked), speed_rows(ranked))


def stdout_console() -> Console:
    """Results go to stdout; respects NO_COLOR, COLUMNS and whether stdout is a terminal."""
    return Console(highlight=False, markup=False, emoji=False)


def ranked_lines(report: Report, width: int) -> list[Text]:
    """The ranked table: one line a layout where that fits into the width, else the key on a line above its numbers.

    A key is never shortened: it is there to be copied.
    """
    titles = [tuple(lines) for lines in zip(*CELL_TITLES, strict=True)]
    cells = [ranked_cells(ranked) for ranked in report.layouts]
    labels = [" ".join((ranked.key, *marks(ranked, report.winner))) for ranked in report.layouts]
    styles = [_style(ranked, report.winner) for ranked in report.layouts]

    names = ["", "layout", *labels]
    whole = [(row[0], name, *row[1:]) for row, name in zip([*titles, *cells], names, strict=True)]
    lines = _aligned(whole, words=("layout", "basis", "verdict"), width=width)
    if max(map(len, lines)) <= width:
        return [Text(line, style=style) for line, style in zip(lines, ["bold", "bold", *styles], strict=True)]

    indent = max(4, 1 + max(len(row[0]) for row in cells))
    rows = _aligned([row[1:] for row in (*titles, *cells)], words=("basis", "verdict"), width=width - indent)
    stacked = [Text(" " * indent + row, style="bold") for row in rows[: len(titles)]]
    for row, cell, label, style in zip(rows[len(titles) :], cells, labels, styles, strict=True):
        stacked.append(Text(f"{cell[0]:>{indent - 1}} {label}", style=style))
        stacked.append(Text(" " * indent + row, style=style))
    return stacked


def _aligned(rows: Sequence[tuple[str, ...]], *, words: tuple[str, ...], width: int) -> list[str]:
    """Lines of equal columns, closer together where they do not fit. words: titles of the columns set to the left."""
    columns = []
    for column in zip(*rows, strict=True):
        widest = max(map(len, column))
        left = any(cell in words for cell in column[:2])
        columns.append([cell.ljust(widest) if left else cell.rjust(widest) for cell in column])
    for gap in ("  ", " "):
        lines = [gap.join(line).rstrip() for line in zip(*columns, strict=True)]
        if max(map(len, lines)) <= width:
            break
    return lines


def _style(ranked: RankedLayout, winner: RankedLayout | None) -> str:
    is_winner = winner is not None and ranked.key == winner.key
    return " ".join(word for word in ("bold" if is_winner else "", _STYLES[ranked.verdict]) if word)


def _print_answer(console: Console, report: Report) -> None:
    for key, evidence in failures(report):
        _item(console, f"{key}: {evidence}")
    if report.winner is not None:
        _say(console, f"winner: {winner_sentence(report.winner)}", style="bold")
    else:
        _say(console, nothing_sentence(report), style="bold red")
        miss = report.nearest_miss
        for reason in miss.reasons if miss is not None else ():
            _item(console, f"{reason.code}: {reason.message}")
    calibration = calibration_sentence(report)
    if calibration is not None:
        _say(console, calibration)


def _print_space(console: Console, report: Report) -> None:
    space = space_sentence(report.space, report.limit_bytes)
    _say(console, f"{space}; {format_seconds(report.elapsed_s)} in all")
    _say(console, f"rejected by rule: {rejection_sentence(report.space)}")


def _print_run(console: Console, report: Report) -> None:
    _warn(console, report.warnings)
    for note in report.notes:
        _say(console, f"note: {note}")
    if report.stop_reason is not None:
        _say(console, f"stopped: {report.stop_reason}")
    if report.run is not None:
        _whole(console, f"run folder: {report.run}")
        if report.winner is not None:
            _whole(console, f"launch files: {export_command(report)}")


def _print_parts(console: Console, title: tuple[str, str], parts: list[Part], totals: list[tuple[str, str]]) -> None:
    """A table of parts and, below it, what they come to."""
    rows = [(*title, "share"), *parts, *((name, amount, "") for name, amount in totals)]
    lines = _aligned(rows, words=title[:1], width=console.width)
    console.print()
    for index, line in enumerate(lines):
        console.print(Text(line, style="bold" if index == 0 or index > len(parts) else ""), overflow="fold")


def _warn(console: Console, messages: Iterable[str]) -> None:
    for message in messages:
        lines = _wrapped(f"warning: {message}", console.width)
        console.print(Text.assemble((lines[0][:8], "yellow"), lines[0][8:]), *map(Text, lines[1:]), sep="\n")


def _say(console: Console, sentence: str, *, style: str = "", indent: str = "") -> None:
    for line in _wrapped(sentence, console.width, indent=indent):
        console.print(Text(line, style=style))


def _item(console: Console, sentence: str) -> None:
    _say(console, sentence, indent="  ")


def _wrapped(sentence: str, width: int, *, indent: str = "") -> list[str]:
    """Lines that break between words only, since a layout key has hyphens."""
    return textwrap.wrap(
        printable(sentence), width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )  # fmt: skip


def _whole(console: Console, line: str) -> None:
    """A line that is there to be copied: only the terminal itself wraps it."""
    console.print(Text(printable(line)), soft_wrap=True)
