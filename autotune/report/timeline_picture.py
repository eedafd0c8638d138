"""A replayed schedule as a picture: what each rank does above, what it holds below."""

import io
from typing import TYPE_CHECKING, Final, Literal

from autotune.cost.pipeline.memory import live_bytes, resident_bytes
from autotune.cost.pipeline.operations import Kind, Operation, Schedule
from autotune.cost.pipeline.timeline import Timeline

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PictureFormat = Literal["png", "svg"]

_COLOURS: Final = {
    Kind.FORWARD: ("#7aa6d8", "#3f6fa8", "#a9c7ea", "#5b8bc4"),
    Kind.BACKWARD: ("#7fbf8a", "#3f8a50", "#aedcb6", "#5da56b"),
    Kind.INPUT_GRADIENT: ("#8fd0c4", "#3f9485", "#bde6de", "#62b3a4"),
    Kind.WEIGHT_GRADIENT: ("#e6b566", "#b27d22", "#f2d5a3", "#cf9a41"),
}
"""Of each kind: the chunks in turn; a second copy of the weights starts at the third."""

_NAMES: Final = {
    Kind.FORWARD: "forward",
    Kind.BACKWARD: "backward",
    Kind.INPUT_GRADIENT: "input gradient",
    Kind.WEIGHT_GRADIENT: "weight gradient",
}
_MOST_NAMED_RANKS: Final = 8
_INCHES_PER_DIGIT: Final = 0.085
_HEIGHT: Final = 0.86
"""Of a rank's bar; ranks are 1 apart."""


def picture(timeline: Timeline, *, image_format: PictureFormat, time_unit: str, memory_unit: str) -> bytes:
    """The picture as a file's content. The same timeline gives the same bytes."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({"svg.hashsalt": "autotune", "svg.fonttype": "none"}):
        ranks_height = 0.5 + 0.36 * timeline.schedule.pp
        width = _width_inches(timeline)
        figure = Figure(figsize=(width, ranks_height + 3), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=[ranks_height, 2])
        _draw_ranks(above, timeline, inches_per_second=width / timeline.makespan_s)
        _draw_memory(below, timeline)
        figure.suptitle(_title(timeline), x=0.01, ha="left", fontsize=11)
        below.set_title(f"held ({memory_unit})", loc="left", fontsize=9)
        below.set_xlabel(f"time ({time_unit})", fontsize=9)
        content = io.BytesIO()
        figure.savefig(content, format=image_format, dpi=120, metadata=_metadata(image_format))
    return content.getvalue()


def _width_inches(timeline: Timeline) -> float:
    """Wide enough for the labels of passes of average length, within reason."""
    passes = sum(len(operations) for operations in timeline.schedule.ranks)
    average_s = sum(timeline.busy_s) / passes
    return min(max(10.0, 0.2 * timeline.makespan_s / average_s), 32.0)


def _metadata(image_format: PictureFormat) -> dict[str, str | None]:
    return {"Date": None} if image_format == "svg" else {}


def _title(timeline: Timeline) -> str:
    schedule = timeline.schedule
    chunks = f", {schedule.vpp} chunks a rank" if schedule.vpp > 1 else ""
    copies = f", {schedule.replicas} copies of the weights" if schedule.replicas > 1 else ""
    return (
        f"{schedule.name}: {schedule.pp} ranks, {schedule.micro_batches} micro-batches{chunks}{copies} · "
        f"bubble share {100 * timeline.bubble_share:.1f} % · peak {max(timeline.peak_bytes):.2f}"
    )


def _draw_ranks(axes: "Axes", timeline: Timeline, *, inches_per_second: float) -> None:
    schedule = timeline.schedule
    labelled_s = _INCHES_PER_DIGIT * len(str(schedule.micro_batches - 1)) / inches_per_second
    for rank, operations in enumerate(schedule.ranks):
        starts, ends = timeline.start_s[rank], timeline.end_s[rank]
        axes.broken_barh(
            [(start, end - start) for start, end in zip(starts, ends, strict=True)],
            (rank - _HEIGHT / 2, _HEIGHT),
            facecolors=[_colour(operation, schedule) for operation in operations],
            edgecolor="white",
            linewidth=0.3,
        )
        pairs = [n for n, operation in enumerate(operations) if operation in schedule.fused]
        axes.broken_barh(
            [(starts[n], ends[n + 1] - starts[n]) for n in pairs],
            (rank - _HEIGHT / 2, _HEIGHT),
            facecolors="none",
            edgecolor="black",
            linewidth=0.9,
        )
        for start, end, operation in zip(starts, ends, operations, strict=True):
            if end - start >= labelled_s:
                label = str(operation.micro_batch)
                axes.text((start + end) / 2, rank, label, ha="center", va="center", fontsize=6.5)
    axes.set_yticks(range(schedule.pp), [f"rank {rank}" for rank in range(schedule.pp)], fontsize=8)
    axes.set_ylim(schedule.pp - 0.5, -0.5)
    axes.set_xlim(0, timeline.makespan_s)
    axes.set_facecolor("#f1f1f1")
    used = {operation.kind for operations in schedule.ranks for operation in operations}
    for kind in (kind for kind in Kind if kind in used):
        axes.fill_between([], [], [], color=_COLOURS[kind][0], label=_NAMES[kind])
    axes.legend(ncols=len(used), loc="lower right", bbox_to_anchor=(1, 1), fontsize=8, frameon=False)


def _draw_memory(axes: "Axes", timeline: Timeline) -> None:
    """One line for each rank; many lines are thin."""
    ranks = timeline.schedule.pp
    for rank in range(ranks):
        times, held = zip(*_held_over_time(timeline, rank).items(), strict=True)
        colour = str(0.1 + 0.7 * rank / max(ranks - 1, 1))
        axes.step(times, held, where="post", color=colour, linewidth=1.2 if ranks <= _MOST_NAMED_RANKS else 0.6)
        if ranks <= _MOST_NAMED_RANKS:
            axes.plot([], [], color=colour, label=f"rank {rank}")
    axes.set_ylim(bottom=0)
    if ranks <= _MOST_NAMED_RANKS:
        axes.legend(fontsize=7, ncols=ranks, loc="lower right", bbox_to_anchor=(1, 1), frameon=False)


def _held_over_time(timeline: Timeline, rank: int) -> dict[float, float]:
    """What a rank holds from each time on; what is freed and taken at the same time is not seen."""
    held = {0.0: resident_bytes(timeline.schedule, timeline.costs, rank)}
    lived = live_bytes(timeline.schedule, timeline.costs, rank)
    for start_s, end_s, (during, after) in zip(timeline.start_s[rank], timeline.end_s[rank], lived, strict=True):
        held |= {start_s: during, end_s: after}
    return held | {timeline.makespan_s: list(held.values())[-1]}


def _colour(operation: Operation, schedule: Schedule) -> str:
    shades = _COLOURS[operation.kind]
    if schedule.replicas > 1:
        return shades[(operation.stage // schedule.pp % 2) + 2 * operation.replica]
    return shades[operation.stage // schedule.pp % len(shades)]
