import time

import numpy as np
import pytest

import autotune.cost.estimate as module
from autotune.cost.estimate import estimate
from autotune.cost.profile import Factors
from autotune.errors import InputError
from autotune.spec.layout import Layout, LayoutTable
from autotune.spec.workload import Problem, WorkloadSpec
from tests.cost.profiles import estimate_of, master_copy_profile
from tests.examples import h100_cluster, llama_3_8b, problem

LAYOUTS = [
    Layout(tp=tp, micro_batch_size=mbs, recompute=r) for tp in (1, 2, 4) for mbs in (1, 2) for r in ("none", "full")
]


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = estimate_of(LAYOUTS, problem())
    monkeypatch.setattr(module, "CHUNK_ROWS", 5)
    chunked = estimate_of(LAYOUTS, problem())

    assert len(chunked) == len(LAYOUTS)
    for name, column in whole.memory.parts.items():
        assert np.array_equal(column, chunked.memory.parts[name]), name
    for name, column in whole.time.parts.items():
        assert np.array_equal(column, chunked.time.parts[name]), name
    assert np.array_equal(whole.fullest_stage, chunked.fullest_stage)
    assert np.array_equal(whole.host_bytes, chunked.host_bytes)


def test_an_empty_table_has_an_empty_estimate() -> None:
    got = estimate(LayoutTable.of([]), problem(), master_copy_profile(), Factors())

    assert len(got) == 0
    assert got.memory.peak_bytes.shape == (0,)
    assert got.time.step_s.shape == (0,)


def test_a_precision_that_the_gpu_lacks_is_an_input_error() -> None:
    cluster = h100_cluster(1, 8)
    cluster.gpu.peak_flops_per_s.pop("fp8")
    workload = WorkloadSpec(sequence_length=4096, global_batch_size=8, precision="fp8")

    with pytest.raises(InputError, match="no peak rate for fp8"):
        estimate_of([Layout()], Problem(model=llama_3_8b(), cluster=cluster, workload=workload))


def test_a_hundred_thousand_layouts_are_costed_in_a_second() -> None:
    """Processor seconds, and far below the speed of an idle core, so that only a loop over rows can fail it."""
    many = LayoutTable.of(LAYOUTS).take(np.arange(100_000) % len(LAYOUTS))

    start = time.process_time()
    estimate(many, problem(), master_copy_profile(), Factors())

    assert time.process_time() - start < 1.0
