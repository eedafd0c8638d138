"""Schedules of every name and many sizes, and their replay in units of one rank."""

from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from autotune.cost.pipeline.costs import even_costs
from autotune.cost.pipeline.operations import Schedule
from autotune.cost.pipeline.registry import BUILDERS, build
from autotune.cost.pipeline.replay import replay
from autotune.cost.pipeline.timeline import Timeline
from autotune.spec.schedules import SCHEDULES


@dataclass(frozen=True, kw_only=True)
class Size:
    """Arguments of `build`."""

    name: str
    pp: int
    micro_batches: int
    options: dict[str, Any] = field(default_factory=dict)

    def build(self) -> Schedule:
        return build(self.name, pp=self.pp, micro_batches=self.micro_batches, **self.options)


def replayed(
    name: str, *, pp: int, m: int, f: float = 1, b: float = 1, w: float = 1, transfer: float = 0, **options: Any
) -> Timeline:
    """A schedule where a rank's F, B, W take f, b, w and a micro-batch's activations on a rank are 1."""
    schedule = build(name, pp=pp, micro_batches=m, **options)
    costs = even_costs(
        schedule.stages,
        forward_s=f / schedule.vpp,
        input_gradient_s=b / schedule.vpp,
        weight_gradient_s=w / schedule.vpp,
        activation_bytes=1 / schedule.vpp,
        transfer_s=transfer,
    )
    return replay(schedule, costs)


def idle_s(timeline: Timeline) -> float:
    """Idle time of a rank from the first start of all to the last end of all; ranks are equally busy here."""
    return timeline.makespan_s - timeline.busy_s[0]


def idle_in_own_span_s(timeline: Timeline) -> float:
    """Idle time of the rank with the longest span, as the zero-bubble papers count it."""
    return timeline.period_s - timeline.busy_s[0]


@st.composite
def sizes(draw: st.DrawFn) -> Size:
    """Any schedule at any size that it has, up to 8 ranks."""
    name = draw(st.sampled_from(sorted(BUILDERS)))
    facts = SCHEDULES[name]
    pp = draw(st.integers(1, 8))
    if facts.even_pp:
        pp += pp % 2
    micro_batches = draw(st.integers(1, 20))
    if facts.micro_batches_multiple_of_pp:
        micro_batches = pp * (micro_batches % 4 + 1)
    if facts.weight_copies == 2:
        micro_batches += micro_batches % 2
    micro_batches = max(micro_batches, facts.min_micro_batches_per_stage * pp)
    options: dict[str, Any] = {}
    if facts.fixed_vpp is None:
        options["vpp"] = draw(st.integers(2, 4))
    if name == "chronos":
        options["recomputed_chunks"] = draw(st.integers(0, options["vpp"]))
    if name == "seq1f1b":
        options["parts"] = draw(st.integers(1, 4))
    if name == "hanayo":
        options["waves"] = draw(st.integers(1, 3))
    return Size(name=name, pp=pp, micro_batches=micro_batches, options=options)
