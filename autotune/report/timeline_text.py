"""A replayed schedule as lines of text: one row of cells for each rank, and what the numbers say.

Cells know which pass they are, so that whoever prints them may colour them.
"""

import math
from dataclasses import dataclass
from typing import Final

from autotune.cost.pipeline.operations import Kind, Operation, Schedule
from autotune.cost.pipeline.timeline import Timeline

_LETTERS: Final = {Kind.FORWARD: "F", Kind.BACKWARD: "B", Kind.INPUT_GRADIENT: "B", Kind.WEIGHT_GRADIENT: "W"}
_FEWEST_COLUMNS: Final = 20
_MOST_COLUMNS_PER_PASS: Final = 12


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """A pass, or a wait if kind is None, as wide as it is long."""

    text: str
    kind: Kind | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One rank from the first start to the last end."""

    label: str
    cells: tuple[Cell, ...]


def timeline_rows(timeline: Timeline, *, width: int | None = None) -> tuple[Row, ...]:
    """Each rank drawn on so many columns, label included; None: as wide as all labels of passes need.

    A pass too short for its label shows the start of it.
    """
    labels = [f"rank {rank:{len(str(timeline.schedule.pp - 1))}d} " for rank in range(timeline.schedule.pp)]
    columns = _natural_columns(timeline)
    if width is not None:
        columns = min(columns, max(width - len(labels[0]), _FEWEST_COLUMNS))
    scale = columns / timeline.makespan_s
    return tuple(Row(label=label, cells=_cells(timeline, rank, scale)) for rank, label in enumerate(labels))


def _natural_columns(timeline: Timeline) -> int:
    """Columns at which the shortest pass has room for its label, but not above a limit per average pass."""
    passes = [
        (end - start, operation)
        for starts, ends, operations in zip(timeline.start_s, timeline.end_s, timeline.schedule.ranks, strict=True)
        for start, end, operation in zip(starts, ends, operations, strict=True)
    ]
    widest = max(len(_label(operation, timeline.schedule)) for _, operation in passes)
    shortest_s = min(seconds for seconds, _ in passes)
    average_s = sum(seconds for seconds, _ in passes) / len(passes)
    smallest_s = max(shortest_s, average_s * (widest + 1) / _MOST_COLUMNS_PER_PASS)
    return math.ceil((widest + 1) * timeline.makespan_s / smallest_s)


def plain_text(row: Row) -> str:
    """A row without colours."""
    return row.label + "".join(cell.text for cell in row.cells)


def legend(schedule: Schedule) -> str:
    """What the letters mean."""
    words = ["F forward"]
    kinds = {operation.kind for operations in schedule.ranks for operation in operations}
    if Kind.INPUT_GRADIENT in kinds:
        whole = " (whole where no W follows)" if Kind.BACKWARD in kinds else ""
        words += [f"B input gradient{whole}", "W weight gradient"]
    else:
        words.append("B backward")
    words.append("then the micro-batch")
    if schedule.vpp > 1:
        words.append("a, b, … the chunk")
    if schedule.parts > 1:
        words.append(".0, .1, … the slice")
    if schedule.replicas > 1:
        words.append("small letters: the second copy of the weights")
    return "; ".join([*words, "dots: waiting"])


def summary_lines(timeline: Timeline) -> list[str]:
    """Step time, bubble share and peaks, in the units of the costs."""
    peaks = timeline.peak_bytes
    return [
        f"step time      {timeline.makespan_s:.2f}",
        f"without a barrier between steps  {timeline.period_s:.2f}",
        f"bubble share   {100 * timeline.bubble_share:.1f} %",
        *(f"peak memory    rank {rank}  {peak:.2f}" for rank, peak in enumerate(peaks)),
    ]


def bubble_lines(timeline: Timeline) -> list[str]:
    """Every wait: rank, start, length, and the memory left below the fullest rank's peak."""
    lines = [f"{'rank':>4}  {'start':>9}  {'length':>9}  {'free memory':>11}"]
    for rank in range(timeline.schedule.pp):
        lines += [
            f"{rank:>4}  {bubble.start_s:>9.2f}  {bubble.length_s:>9.2f}  {bubble.free_bytes:>11.2f}"
            for bubble in timeline.bubbles(rank)
        ]
    return lines


def _cells(timeline: Timeline, rank: int, scale: float) -> tuple[Cell, ...]:
    cells = []
    column = 0
    passes = zip(timeline.start_s[rank], timeline.end_s[rank], timeline.schedule.ranks[rank], strict=True)
    for start_s, end_s, operation in passes:
        first, last = round(start_s * scale), round(end_s * scale)
        if first > column:
            cells.append(Cell(text="." * (first - column), kind=None))
        label = _label(operation, timeline.schedule)
        cells.append(Cell(text=label[: last - first].ljust(last - first), kind=operation.kind))
        column = last
    rest = round(timeline.makespan_s * scale) - column
    if rest:
        cells.append(Cell(text="." * rest, kind=None))
    return tuple(cells)


def _label(operation: Operation, schedule: Schedule) -> str:
    """E.g. F3, F3a for the first chunk, F3.1 for the second slice, f3 for the second copy of the weights."""
    letter = _LETTERS[operation.kind]
    text = f"{letter.lower() if operation.replica else letter}{operation.micro_batch}"
    if schedule.vpp > 1:
        text += chr(ord("a") + operation.stage // schedule.pp)
    if schedule.parts > 1:
        text += f".{operation.part}"
    return text
