"""From the axes that a user gave to one whole layout: what is left open is derived, taken from the engine, or off."""

from collections.abc import Mapping
from dataclasses import dataclass

from autotune.spec.axes import AXES, AXIS_BY_NAME, AxisKind, AxisValue
from autotune.spec.layout import Layout
from autotune.spec.schedules import SCHEDULES
from autotune.spec.verdict import Origin
from autotune.spec.workload import Problem

DERIVED_ZERO_STAGE = 1
"""The stage that dp_shard > 1 means where neither the user nor the engine names one: the least that shards anything."""

DERIVED_SCHEDULE = "interleaved"
"""The schedule that vpp > 1 means where the user names none (Narayanan et al. 2021)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ResolvedLayout:
    """origins: where the value of each axis came from; notes: what was derived that the user may not expect."""

    layout: Layout
    origins: dict[str, Origin]
    notes: tuple[str, ...] = ()


@dataclass(kw_only=True, slots=True)
class _Draft:
    """A layout while it is being resolved; a given value is never changed."""

    values: dict[str, AxisValue]
    origins: dict[str, Origin]
    notes: list[str]

    def is_given(self, axis: str) -> bool:
        return self.origins[axis] is Origin.GIVEN

    def degree(self, axis: str) -> int:
        return int(self.values[axis])

    def derive(self, axis: str, value: AxisValue) -> None:
        """Set an axis that the user did not give."""
        if not self.is_given(axis) and self.values[axis] != value:
            self.values[axis] = value
            self.origins[axis] = Origin.DERIVED


def resolve_layout(
    given: Mapping[str, AxisValue], defaults: Mapping[str, AxisValue], problem: Problem
) -> ResolvedLayout:
    """Fill in every axis. Never judges: what is illegal is for the rules to say.

    defaults: the engine's; the name of another axis as a degree's value means "as many as that one" (etp: "tp").
    Data parallelism that is left over goes to dp_shard if zero_stage > 0, else to dp_replicate.
    """
    draft = _start(given, defaults)
    _follow_model(draft, problem)
    _pair_schedule_and_chunks(draft)
    _name_zero_stage(draft)
    _spread_left_over_ranks(draft, problem)
    _settle_zero_stage(draft)
    return ResolvedLayout(
        layout=Layout(**draft.values),  # type: ignore[arg-type]
        origins=draft.origins,
        notes=tuple(draft.notes),
    )


def idle_gpus_note(layout: Layout, problem: Problem) -> str | None:
    """A sentence if the layout leaves GPUs without work."""
    idle = problem.cluster.gpus - layout.gpus
    if idle <= 0:
        return None
    cluster = problem.cluster
    return f"the layout uses {layout.gpus} of the {cluster.gpus} GPUs of {cluster.name} and leaves {idle} idle"


def _start(given: Mapping[str, AxisValue], defaults: Mapping[str, AxisValue]) -> _Draft:
    values: dict[str, AxisValue] = {axis.name: axis.off for axis in AXES}
    origins = dict.fromkeys(values, Origin.OFF)
    for source, origin in ((defaults, Origin.ENGINE_DEFAULT), (given, Origin.GIVEN)):
        values.update(source)
        origins.update(dict.fromkeys(source, origin))
    for axis in AXES:
        same_as = values[axis.name]
        if axis.kind is AxisKind.DEGREE and isinstance(same_as, str):
            values[axis.name] = values[same_as]
    return _Draft(values=values, origins=origins, notes=[])


def _follow_model(draft: _Draft, problem: Problem) -> None:
    """An engine's default that means nothing for this model or degree is off."""
    meaningless = {
        "ep": problem.model.moe is None,
        "etp": problem.model.moe is None,
        "sequence_parallel": draft.values["tp"] == 1,
        "vpp": draft.values["pp"] == 1,
        "schedule": draft.values["pp"] == 1,
    }
    for axis, off in meaningless.items():
        if off:
            draft.derive(axis, AXIS_BY_NAME[axis].off)


def _pair_schedule_and_chunks(draft: _Draft) -> None:
    """A schedule may imply the chunks, and chunks given without a schedule imply one that has chunks."""
    if draft.values["pp"] == 1:
        return
    facts = SCHEDULES[str(draft.values["schedule"])]
    if not draft.is_given("schedule") and draft.degree("vpp") > 1 and not facts.chunked:
        draft.derive("schedule", DERIVED_SCHEDULE)
        draft.notes.append(f"vpp={draft.values['vpp']} was given without a schedule: {DERIVED_SCHEDULE} is assumed")
    elif facts.fixed_vpp is not None:
        draft.derive("vpp", facts.fixed_vpp)


def _name_zero_stage(draft: _Draft) -> None:
    """dp_shard > 1 shards something, so it has a zero_stage."""
    if draft.is_given("zero_stage") or draft.values["zero_stage"] != 0 or draft.degree("dp_shard") == 1:
        return
    draft.derive("zero_stage", DERIVED_ZERO_STAGE)
    draft.notes.append(
        f"dp_shard={draft.values['dp_shard']} was given without a zero_stage: {DERIVED_ZERO_STAGE} is assumed"
    )


def _spread_left_over_ranks(draft: _Draft, problem: Problem) -> None:
    wanted = ("dp_shard", "dp_replicate") if draft.values["zero_stage"] else ("dp_replicate", "dp_shard")
    open_axes = [axis for axis in wanted if not draft.is_given(axis)]
    if draft.values["zero_stage"] == 0:
        open_axes = [axis for axis in open_axes if axis != "dp_shard"]
    if not open_axes:
        return
    target = open_axes[0]
    fixed = [axis for axis in ("tp", "cp", "pp", "dp_replicate", "dp_shard") if axis != target]
    used = 1
    for axis in fixed:
        used *= draft.degree(axis)
    gpus = problem.cluster.gpus
    if used < 1 or used > gpus:
        return
    draft.derive(target, gpus // used)
    if gpus % used:
        draft.notes.append(
            f"{'·'.join(fixed)} = {used} does not divide the {gpus} GPUs: {target}={gpus // used} uses "
            f"{gpus // used * used} of them"
        )


def _settle_zero_stage(draft: _Draft) -> None:
    """With one data-parallel shard there is nothing that a zero_stage could shard."""
    stage = draft.values["zero_stage"]
    if stage == 0 or draft.degree("dp_shard") > 1:
        return
    if draft.is_given("zero_stage"):
        draft.notes.append(
            f"zero_stage={stage} was given, but no data-parallel ranks are left that it could shard over"
        )
        return
    draft.derive("zero_stage", 0)
    draft.notes.append(f"the engine's default zero_stage={stage} is off: no data-parallel ranks are left to shard over")
