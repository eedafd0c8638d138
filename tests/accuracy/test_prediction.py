from dataclasses import replace

import pytest

from autotune.spec.measured import MemoryKind
from autotune.units import GIB
from tests.accuracy.predicted import base_run, predicted


@pytest.fixture
def run(tmp_path):
    return replace(base_run(tmp_path), peak_memory_bytes=10.0 * GIB)


def test_device_memory_is_compared_with_everything(run):
    assert predicted(run, memory_kind=MemoryKind.DEVICE).like_with_like_bytes == 12 * GIB


def test_reserved_memory_is_compared_without_what_lives_outside_the_framework(run):
    assert predicted(run, memory_kind=MemoryKind.RESERVED).like_with_like_bytes == 10 * GIB


def test_allocated_memory_is_compared_without_the_allocators_slack_too(run):
    # 4 % of slack are in the prediction.
    assert predicted(run, memory_kind=MemoryKind.ALLOCATED).like_with_like_bytes == pytest.approx(10 * GIB / 1.04)


def test_a_peak_of_unknown_kind_is_not_compared(run):
    row = predicted(run, memory_kind=MemoryKind.UNKNOWN)

    assert (row.measured_bytes, row.memory_error) == (None, None)


def test_the_last_ranks_peak_is_compared_only_where_the_last_rank_is_the_fullest(run):
    kind = {"memory_kind": MemoryKind.RESERVED, "memory_rank": "last"}  # pp is 2

    assert predicted(run, fullest_stage=0, **kind).memory_error is None
    assert predicted(run, fullest_stage=1, **kind).memory_error == pytest.approx(0.0)


def test_a_run_dies_where_all_that_it_needs_is_more_than_a_process_may_use(run):
    assert predicted(run, limit_gib=11.9).out_of_memory
    assert not predicted(run, limit_gib=12.0).out_of_memory


def test_the_time_of_a_memory_only_run_is_never_scored(run):
    row = predicted(run, time_counts=False)

    assert (row.measured_step_time_s, row.time_error) == (None, None)
    assert predicted(run, step_time_s=5.0).time_error == pytest.approx(-0.5)  # 10 s were measured
