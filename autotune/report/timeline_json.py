"""A replayed schedule as JSON: its numbers, the list of its bubbles, and every operation with its time."""

import json
from collections.abc import Sequence

from autotune import __version__
from autotune.cost.pipeline.timeline import Timeline
from autotune.report.document import SCHEMA_VERSION


def timeline_json(timeline: Timeline, *, engines: Sequence[str], time_unit: str, memory_unit: str) -> str:
    """One object. Times and memory are in the units that it names."""
    schedule = timeline.schedule
    document = {
        "schema_version": SCHEMA_VERSION,
        "tool_version": __version__,
        "schedule": schedule.name,
        "pp": schedule.pp,
        "vpp": schedule.vpp,
        "micro_batches": schedule.micro_batches,
        "parts": schedule.parts,
        "weight_copies": schedule.replicas,
        "engines": list(engines),
        "launchable": bool(engines),
        "time_unit": time_unit,
        "memory_unit": memory_unit,
        "step_time": timeline.makespan_s,
        "step_time_without_barrier": timeline.period_s,
        "bubble_share": timeline.bubble_share,
        "ranks": [
            {
                "rank": rank,
                "stages": _stages_of(timeline, rank),
                "busy": busy,
                "peak_memory": peak,
                "bubbles": [
                    {"start": bubble.start_s, "length": bubble.length_s, "free_memory": bubble.free_bytes}
                    for bubble in timeline.bubbles(rank)
                ],
                "operations": _operations_of(timeline, rank),
            }
            for rank, (busy, peak) in enumerate(zip(timeline.busy_s, timeline.peak_bytes, strict=True))
        ],
    }
    return json.dumps(document, indent=2)


def _stages_of(timeline: Timeline, rank: int) -> list[list[int]]:
    """The stages that a rank holds of each copy of the weights."""
    return [
        [stage for stage, holder in enumerate(placement) if holder == rank]
        for placement in timeline.schedule.placement
    ]  # fmt: skip


def _operations_of(timeline: Timeline, rank: int) -> list[dict[str, str | int | float]]:
    return [
        {
            "kind": operation.kind.value,
            "stage": operation.stage,
            "micro_batch": operation.micro_batch,
            "weight_copy": operation.replica,
            "part": operation.part,
            "start": start,
            "end": end,
        }
        for operation, start, end in zip(
            timeline.schedule.ranks[rank], timeline.start_s[rank], timeline.end_s[rank], strict=True
        )
    ]
