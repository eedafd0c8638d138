"""The orders that torch.distributed.pipelining runs are ours, operation by operation."""

from types import ModuleType
from typing import Any

import pytest

from autotune.cost.pipeline.operations import Kind, Operation, Schedule
from autotune.cost.pipeline.registry import build

KINDS = {"F": Kind.FORWARD, "B": Kind.BACKWARD, "I": Kind.INPUT_GRADIENT, "W": Kind.WEIGHT_GRADIENT}


@pytest.fixture(scope="module")
def schedules() -> ModuleType:
    return pytest.importorskip("torch.distributed.pipelining.schedules")


def torch_ranks(schedule_class: type, *, pp: int, m: int, chunks: int) -> list[list[Any]]:
    """Each rank's actions, without building stages: only what the order is computed from is set."""
    rounds = max(1, m // pp)
    schedule = object.__new__(schedule_class)
    for name, value in {
        "pp_group_size": pp,
        "n_local_stages": chunks,
        "_stages": [None] * chunks,
        "num_stages": pp * chunks,
        "_num_stages": pp * chunks,
        "_n_microbatches": m,
        "number_of_rounds": rounds,
        "microbatches_per_round": m // rounds,
    }.items():
        setattr(schedule, name, value)
    if hasattr(schedule, "_calculate_single_rank_operations"):
        return [schedule._calculate_single_rank_operations(rank) for rank in range(pp)]
    return list(schedule._get_pipeline_order().values())


def operations(actions: list[Any]) -> tuple[Operation, ...]:
    """Without waits, reductions and the frame around overlapped pairs."""
    flat = [part for action in actions if action is not None for part in (action.sub_actions or (action,))]
    return tuple(
        Operation(KINDS[part.computation_type.value], part.stage_index, part.microbatch_index)
        for part in flat
        if part.computation_type.value in KINDS
    )


def compare(schedule: Schedule, actions: list[list[Any]]) -> None:
    for rank, ours in enumerate(schedule.ranks):
        assert operations(actions[rank]) == ours


@pytest.mark.parametrize(("pp", "m"), [(2, 4), (4, 8), (4, 3)])
def test_the_order_of_gpipe_is_torchs(schedules: ModuleType, pp: int, m: int) -> None:
    compare(build("gpipe", pp=pp, micro_batches=m), torch_ranks(schedules.ScheduleGPipe, pp=pp, m=m, chunks=1))


@pytest.mark.parametrize(("pp", "m"), [(2, 4), (4, 8), (4, 3)])
def test_the_order_of_1f1b_is_torchs(schedules: ModuleType, pp: int, m: int) -> None:
    ours = build("1f1b", pp=pp, micro_batches=m)
    actions = torch_ranks(schedules.Schedule1F1B, pp=pp, m=m, chunks=1)

    # torch prints the last rank's forwards from 1 on (it runs them from 0): only the others are compared
    for rank in range(pp - 1):
        assert operations(actions[rank]) == ours.ranks[rank]


@pytest.mark.parametrize(("pp", "m", "vpp"), [(2, 4, 2), (4, 8, 2), (4, 12, 3), (4, 4, 2)])
@pytest.mark.parametrize(
    ("name", "torch_name"),
    [
        ("interleaved", "ScheduleInterleaved1F1B"),
        ("interleaved-zb", "ScheduleInterleavedZeroBubble"),
        ("breadth-first", "ScheduleLoopedBFS"),
    ],
)
def test_orders_of_several_chunks_are_torchs(
    schedules: ModuleType, name: str, torch_name: str, pp: int, m: int, vpp: int
) -> None:
    compare(
        build(name, pp=pp, micro_batches=m, vpp=vpp),
        torch_ranks(getattr(schedules, torch_name), pp=pp, m=m, chunks=vpp),
    )


@pytest.mark.parametrize(("pp", "m"), [(2, 4), (4, 8), (4, 12), (4, 3)])
def test_the_order_of_zb_v_is_torchs(schedules: ModuleType, pp: int, m: int) -> None:
    compare(build("zb-v", pp=pp, micro_batches=m), torch_ranks(schedules.ScheduleZBVZeroBubble, pp=pp, m=m, chunks=2))


@pytest.mark.parametrize(("pp", "m"), [(2, 4), (4, 8), (4, 13)])
def test_the_order_and_the_fused_pairs_of_dualpipev_are_torchs(schedules: ModuleType, pp: int, m: int) -> None:
    ours = build("dualpipev", pp=pp, micro_batches=m)
    actions = torch_ranks(schedules.ScheduleDualPipeV, pp=pp, m=m, chunks=2)

    compare(ours, actions)
    assert ours.fused == {
        operations([action])[0] for rank in actions for action in rank if action is not None and action.sub_actions
    }
