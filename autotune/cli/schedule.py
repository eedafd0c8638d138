"""`autotune schedule`: draw a pipeline schedule, with its bubbles and peak memory."""

import sys
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.text import Text

from autotune.cli.console import stderr_console, write_line
from autotune.cli.errors import ends_with_exit_code
from autotune.cli.options import OutputJson
from autotune.cost.pipeline.operations import Kind
from autotune.errors import EXIT_YES
from autotune.report.timeline_json import timeline_json
from autotune.report.timeline_text import (
    Row,
    bubble_lines,
    legend,
    plain_text,
    summary_lines,
    timeline_rows,
)
from autotune.spec.schedules import SCHEDULES
from autotune.workflow.schedule import (
    MEMORY_UNIT,
    TIME_UNIT,
    ScheduleAnswer,
    ScheduleRequest,
    draw_schedule,
    write_schedule_files,
)

_STYLES: Final = {
    Kind.FORWARD: "black on bright_blue",
    Kind.BACKWARD: "black on green",
    Kind.INPUT_GRADIENT: "black on cyan",
    Kind.WEIGHT_GRADIENT: "black on yellow",
}


@ends_with_exit_code
def schedule(
    *,
    name: Annotated[str, typer.Argument(metavar="NAME", help=f"One of {', '.join(SCHEDULES)}.")],
    pp: Annotated[int, typer.Option("--pp", help="Pipeline ranks.")],
    micro_batches: Annotated[int, typer.Option("--micro-batches", help="Micro-batches of one pipeline in a step.")],
    vpp: Annotated[
        int | None, typer.Option("--vpp", help="Chunks on each rank. Default: the fewest that the schedule has.")
    ] = None,
    backward_ratio: Annotated[
        float, typer.Option("--backward-ratio", help="Time of a backward pass, in forward passes.")
    ] = 2.0,
    weight_gradient_ratio: Annotated[
        float | None,
        typer.Option("--weight-gradient-ratio", help="The weight gradient's part of it. Default: half."),
    ] = None,
    parts: Annotated[int | None, typer.Option("--parts", help="Slices of a sequence (seq1f1b).")] = None,
    waves: Annotated[int | None, typer.Option("--waves", help="Waves of two chunks each (hanayo).")] = None,
    recomputed_chunks: Annotated[
        int, typer.Option("--recomputed-chunks", help="How many of the shallowest chunks are recomputed (chronos).")
    ] = 0,
    transfer: Annotated[
        float, typer.Option("--transfer", help="Time from rank to rank, in forward passes.")
    ] = 0.0,
    png: Annotated[Path | None, typer.Option("--png", help="Write the picture as PNG.")] = None,
    svg: Annotated[Path | None, typer.Option("--svg", help="Write the picture as SVG.")] = None,
    trace: Annotated[
        Path | None, typer.Option("--trace", help="Write a trace for Perfetto, one forward pass being a second.")
    ] = None,
    output_json: OutputJson = False,
) -> int:  # fmt: skip
    """Draw a pipeline schedule with even stages: who runs what when, its bubbles, and its peak memory."""
    answer = draw_schedule(
        ScheduleRequest(
            name=name,
            pp=pp,
            micro_batches=micro_batches,
            vpp=vpp,
            backward_ratio=backward_ratio,
            weight_gradient_ratio=weight_gradient_ratio,
            parts=parts,
            waves=waves,
            recomputed_chunks=recomputed_chunks,
            transfer=transfer,
        )
    )
    if output_json:
        write_line(timeline_json(answer.timeline, engines=answer.engines, time_unit=TIME_UNIT, memory_unit=MEMORY_UNIT))
    else:
        _print(answer)
    console = stderr_console()
    for path in write_schedule_files(answer, png=png, svg=svg, trace=trace):
        console.print(f"wrote {path}", soft_wrap=True, markup=False)
    return EXIT_YES


def _print(answer: ScheduleAnswer) -> None:
    """The drawing, coloured on a terminal and fitted to it; else plain and as wide as it needs."""
    timeline = answer.timeline
    console = Console(file=sys.stdout, highlight=False)
    run_by = f"run by {', '.join(answer.engines)}" if answer.engines else "not launchable: no engine here runs it"
    write_line(f"{timeline.schedule.name} ({run_by})")
    write_line(legend(timeline.schedule))
    write_line("")
    for row in timeline_rows(timeline, width=console.width if console.is_terminal else None):
        if console.is_terminal:
            console.print(_coloured(row), soft_wrap=True)
        else:
            write_line(plain_text(row))
    write_line("")
    write_line(f"Time in {TIME_UNIT}; memory in {MEMORY_UNIT}.")
    for line in (*summary_lines(timeline), "", "bubbles", *bubble_lines(timeline)):
        write_line(line)


def _coloured(row: Row) -> Text:
    text = Text(row.label)
    for cell in row.cells:
        text.append(cell.text, style=_STYLES[cell.kind] if cell.kind is not None else "dim")
    return text
