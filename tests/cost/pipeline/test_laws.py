"""What holds for every schedule at every size, whatever its stages cost."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.cost.pipeline.costs import StageCosts
from autotune.cost.pipeline.memory import live_bytes, resident_bytes
from autotune.cost.pipeline.operations import Kind, Operation, Schedule, broken_promises
from autotune.cost.pipeline.replay import replay
from autotune.spec.schedules import SCHEDULES
from tests.cost.pipeline.sizes import Size, sizes

seconds = st.floats(0.1, 3.0)


def uneven_costs(data: st.DataObject, schedule: Schedule) -> StageCosts:
    """Every stage with costs of its own."""
    column = st.lists(seconds, min_size=schedule.stages, max_size=schedule.stages).map(tuple)
    return StageCosts(
        forward_s=data.draw(column),
        input_gradient_s=data.draw(column),
        weight_gradient_s=data.draw(column),
        activation_bytes=data.draw(column),
        freed_at_input_gradient=data.draw(st.floats(0, 1)),
        boundary_bytes=data.draw(column),
        transient_bytes=data.draw(column),
        resident_bytes=data.draw(column),
        transfer_s=data.draw(st.floats(0, 1)),
    )


@settings(max_examples=120, deadline=None)
@given(sizes())
def test_every_pass_is_there_once_on_the_rank_that_holds_its_stage(size: Size) -> None:
    schedule = size.build()

    assert broken_promises(schedule) == []
    assert schedule.pp == size.pp
    assert schedule.micro_batches == size.micro_batches
    assert schedule.replicas == SCHEDULES[size.name].weight_copies


@settings(max_examples=60, deadline=None)
@given(sizes(), st.data())
def test_no_schedule_deadlocks_and_busy_time_and_bubbles_fill_the_step_of_uneven_stages(
    size: Size, data: st.DataObject
) -> None:
    schedule = size.build()
    timeline = replay(schedule, uneven_costs(data, schedule))

    for rank in range(schedule.pp):
        waited_s = sum(bubble.length_s for bubble in timeline.bubbles(rank))
        assert timeline.busy_s[rank] + waited_s == pytest.approx(timeline.makespan_s)
    assert max(timeline.busy_s) <= timeline.period_s * (1 + 1e-9)
    assert timeline.period_s <= timeline.makespan_s * (1 + 1e-9)


@settings(max_examples=60, deadline=None)
@given(sizes(), st.data())
def test_a_rank_ends_a_step_with_what_it_held_before(size: Size, data: st.DataObject) -> None:
    schedule = size.build()
    costs = uneven_costs(data, schedule)

    for rank in range(schedule.pp):
        before = resident_bytes(schedule, costs, rank)
        lived = live_bytes(schedule, costs, rank)
        assert lived[-1][1] == pytest.approx(before)
        assert all(during >= after - 1e-9 and after >= before - 1e-9 for during, after in lived)


@settings(max_examples=40, deadline=None)
@given(sizes(), st.data())
def test_every_operation_starts_after_what_it_needs_has_arrived(size: Size, data: st.DataObject) -> None:
    schedule = size.build()
    costs = uneven_costs(data, schedule)
    timeline = replay(schedule, costs)
    start = {
        operation: time
        for operations, starts in zip(schedule.ranks, timeline.start_s, strict=True)
        for operation, time in zip(operations, starts, strict=True)
    }
    end = {
        operation: time
        for operations, ends in zip(schedule.ranks, timeline.end_s, strict=True)
        for operation, time in zip(operations, ends, strict=True)
    }

    for operation, start_s in start.items():
        if operation.kind is Kind.FORWARD and operation.stage:
            before = operation._replace(stage=operation.stage - 1)
            assert start_s >= end[before] + _lag_s(schedule, costs, before, operation) - 1e-9
        if operation.kind is Kind.WEIGHT_GRADIENT:
            assert start_s >= end[operation._replace(kind=Kind.INPUT_GRADIENT)] - 1e-9
        if operation.kind in (Kind.BACKWARD, Kind.INPUT_GRADIENT):
            assert start_s >= end[operation._replace(kind=Kind.FORWARD)] - 1e-9
            if operation.stage < schedule.stages - 1:
                deeper = operation._replace(stage=operation.stage + 1)
                arrived = [deeper._replace(kind=kind) for kind in (Kind.BACKWARD, Kind.INPUT_GRADIENT)]
                (before,) = [candidate for candidate in arrived if candidate in end]
                assert start_s >= end[before] + _lag_s(schedule, costs, before, operation) - 1e-9


def _lag_s(schedule: Schedule, costs: StageCosts, before: Operation, after: Operation) -> float:
    placement = schedule.placement[after.replica]
    return 0.0 if placement[before.stage] == placement[after.stage] else costs.transfer_s


@settings(max_examples=40, deadline=None)
@given(sizes(), st.data())
def test_slower_stages_and_links_never_shorten_a_step(size: Size, data: st.DataObject) -> None:
    schedule = size.build()
    costs = uneven_costs(data, schedule)
    stage = data.draw(st.integers(0, schedule.stages - 1))
    slower = tuple(f + (0.5 if index == stage else 0.0) for index, f in enumerate(costs.forward_s))

    step_s = replay(schedule, costs).makespan_s

    assert replay(schedule, replace(costs, forward_s=slower)).makespan_s >= step_s - 1e-9
    assert replay(schedule, replace(costs, transfer_s=costs.transfer_s + 0.5)).makespan_s >= step_s - 1e-9
