from dataclasses import replace

import pytest

from autotune.calibration.observation import (
    COMMUNICATION_PARTS,
    COMPUTE_PARTS,
    OUTSIDE_PART,
    OVERHEAD_PART,
    observe,
)
from autotune.cost.profile import Factors
from autotune.spec.layout import LayoutTable
from autotune.spec.outcome import Failed, RankReport, Status
from tests.search.toy import GIB, layouts, measured, score

ESTIMATES = score(LayoutTable.of(layouts()), Factors(compute_time=1.5))


def _observe(result):
    return observe(
        ESTIMATES, 3, result, predicted_with=Factors(compute_time=1.5), limit_bytes=30.0 * GIB, time_counts=True
    )


def test_every_part_of_the_time_belongs_to_exactly_one_factor():
    grouped = [*COMPUTE_PARTS, *COMMUNICATION_PARTS, OVERHEAD_PART]

    assert sorted(grouped) == sorted(ESTIMATES.time.parts)
    assert OUTSIDE_PART in ESTIMATES.memory.parts


def test_a_measured_run_is_seen_beside_the_parts_of_its_row():
    got = _observe(measured(4.0, 7.0 * GIB))

    # Row 3: tp 1, pp 1, four sequences, full recomputation, computed 1.5 times as slowly.
    assert got.time_parts_s["forward"] == 1.5
    assert got.time_parts_s["recompute"] == 1.5
    assert got.memory_parts_bytes["weights"] == 40 * GIB
    assert (got.step_time_s, got.framework_bytes, got.exceeded_bytes) == (4.0, 7.0 * GIB, None)
    assert got.predicted_with.compute_time == 1.5


@pytest.mark.parametrize(
    ("rank", "held_bytes"),
    [
        (RankReport(rank=1, parameters=1, allocated_bytes=50, reserved_bytes=60), 60.0),
        (RankReport(rank=1, parameters=1, allocated_bytes=50), 50.0),
        (RankReport(rank=1, parameters=1, tensor_bytes=40, resident_bytes=90), 40.0),
        (RankReport(rank=1, parameters=1, resident_bytes=90), None),  # an upper bound only
    ],
)
def test_the_fullest_rank_counts_with_what_the_allocator_holds_and_never_with_the_whole_process(rank, held_bytes):
    result = replace(measured(4.0), ranks=(RankReport(rank=0, parameters=1), rank))

    assert _observe(result).framework_bytes == held_bytes


def test_an_out_of_memory_exceeded_what_the_limit_leaves_the_framework():
    got = _observe(Failed(status=Status.OOM, evidence=""))

    assert got.exceeded_bytes == 29.0 * GIB  # 1 GiB lives outside
    assert (got.step_time_s, got.framework_bytes, got.time_counts) == (None, None, False)


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.OOM])
def test_any_other_failure_teaches_nothing(status):
    assert _observe(Failed(status=status, evidence="")) is None
