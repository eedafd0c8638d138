"""A replayed schedule as a trace of the Chrome format, which Perfetto opens.

https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU (Trace Event Format): times in
microseconds; one process, one thread for each rank, and a counter of what each rank holds.
"""

import json
from typing import Final

from autotune.cost.pipeline.memory import live_bytes
from autotune.cost.pipeline.timeline import Timeline

_US_PER_S: Final = 1e6
_Event = dict[str, str | int | float | dict[str, str | int | float]]


def chrome_trace(timeline: Timeline) -> str:
    """The trace as JSON text."""
    events: list[_Event] = [
        {"name": "process_name", "ph": "M", "pid": 0, "args": {"name": f"pipeline, {timeline.schedule.name}"}}
    ]
    for rank in range(timeline.schedule.pp):
        events.append({"name": "thread_name", "ph": "M", "pid": 0, "tid": rank, "args": {"name": f"rank {rank}"}})
        events += _passes(timeline, rank)
        events += _memory(timeline, rank)
    return json.dumps({"displayTimeUnit": "ms", "traceEvents": events})


def _passes(timeline: Timeline, rank: int) -> list[_Event]:
    schedule = timeline.schedule
    found: list[_Event] = []
    passes = zip(timeline.start_s[rank], timeline.end_s[rank], schedule.ranks[rank], strict=True)
    for start_s, end_s, operation in passes:
        found.append(
            {
                "name": f"{operation.kind}{operation.micro_batch}",
                "cat": operation.kind.name.lower(),
                "ph": "X",
                "pid": 0,
                "tid": rank,
                "ts": start_s * _US_PER_S,
                "dur": (end_s - start_s) * _US_PER_S,
                "args": {
                    "stage": operation.stage,
                    "chunk": operation.stage // schedule.pp,
                    "micro_batch": operation.micro_batch,
                    "replica": operation.replica,
                    "part": operation.part,
                },
            }
        )
    return found


def _memory(timeline: Timeline, rank: int) -> list[_Event]:
    found: list[_Event] = []
    lived = live_bytes(timeline.schedule, timeline.costs, rank)
    for start_s, end_s, (during, after) in zip(timeline.start_s[rank], timeline.end_s[rank], lived, strict=True):
        for time_s, held_bytes in ((start_s, during), (end_s, after)):
            found.append(
                {
                    "name": f"held by rank {rank}",
                    "ph": "C",
                    "pid": 0,
                    "ts": time_s * _US_PER_S,
                    "args": {"bytes": held_bytes},
                }
            )
    return found
