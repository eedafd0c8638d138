from dataclasses import replace

import numpy as np
import pytest

from autotune.cost.kernels import Rates, linear, moving_s, peak_flops_per_s, product_s, rates
from autotune.errors import InputError
from tests.examples import h100_cluster, problem

RATE = Rates(
    product_flops_per_s=1e12,
    attention_forward_flops_per_s=1e12,
    attention_backward_flops_per_s=1e12,
    memory_bytes_per_s=1e11,
    launch_s=1e-6,
    wave_outputs=1000.0,
    gradient_bytes=4,
)


def _product(outputs: float, inner: float, moved_bytes: float) -> float:
    got = product_s(RATE, outputs=np.array([outputs]), inner=np.array([inner]), moved_bytes=np.array([moved_bytes]))
    return float(got[0])


def test_a_large_product_wastes_half_a_wave() -> None:
    # twice 1000 times (100,000 + 500), at 1e12 operations a second
    assert _product(100_000, 1000, 0) == pytest.approx(2.01e-4)


def test_a_product_smaller_than_a_wave_takes_as_long_as_one() -> None:
    # 2 * 1,000,000 * 1000 / 1e12 for any number of outputs up to half a wave
    assert _product(1, 1_000_000, 0) == _product(500, 1_000_000, 0) == pytest.approx(2e-3)


def test_a_thin_product_is_bound_by_memory() -> None:
    # 1e9 bytes at 1e11 bytes/s
    assert _product(1000, 1, 1e9) == pytest.approx(1e-2)


def test_no_kernel_is_faster_than_its_launch() -> None:
    assert _product(1, 1, 1) == 1e-6
    assert moving_s(RATE, np.array([1.0]), kernels=3)[0] == pytest.approx(3e-6)


def test_the_three_products_of_a_projection_differ_in_shape_alone() -> None:
    # rows 1000, inputs 200, outputs 400, half a wave 500:
    # forward 2 * 200 * (400,000 + 500), input gradient 2 * 400 * (200,000 + 500),
    # weight gradient 2 * 1000 * (80,000 + 500)
    got = linear(RATE, rows=np.array([1000.0]), inputs=np.array([200.0]), outputs=np.array([400.0]), size=0)

    assert got.forward_s[0] == pytest.approx(2 * 200 * 400_500 / 1e12)
    assert got.input_gradient_s[0] == pytest.approx(2 * 400 * 200_500 / 1e12)
    assert got.weight_gradient_s[0] == pytest.approx(2 * 1000 * 80_500 / 1e12)


def test_adding_to_an_accumulated_gradient_reads_and_writes_it() -> None:
    # one row: 400 * 200 gradients of 4 bytes read and written, 640,000 bytes at 1e11 bytes/s, beyond the arithmetic
    got = linear(RATE, rows=np.array([1.0]), inputs=np.array([200.0]), outputs=np.array([400.0]), size=0)

    assert got.weight_gradient_s[0] == pytest.approx(6.4e-6)


def test_many_experts_waste_half_a_tile_of_rows_each() -> None:
    # 8 matrices: 1000 + 8 * 64 rows forward
    got = linear(RATE, rows=np.array([1000.0]), inputs=np.array([200.0]), outputs=np.array([400.0]), size=0, matrices=8)

    assert got.forward_s[0] == pytest.approx(2 * 200 * (1512 * 400 + 500) / 1e12)


def test_fp8_leaves_attention_at_the_bf16_rate() -> None:
    question = problem()
    fp8 = replace(question, workload=replace(question.workload, precision="fp8"))

    assert rates(fp8).product_flops_per_s == pytest.approx(1979e12 * 0.7)
    assert rates(fp8).attention_forward_flops_per_s == rates(question).attention_forward_flops_per_s


def test_a_cpu_has_no_waves_and_no_fused_attention() -> None:
    question = problem()
    cluster = replace(question.cluster, gpu=replace(question.cluster.gpu, device="cpu"))
    got = rates(replace(question, cluster=cluster))

    assert got.wave_outputs == 0
    assert got.attention_forward_flops_per_s == got.product_flops_per_s


def test_a_missing_peak_is_said_and_not_assumed() -> None:
    gpu = replace(h100_cluster(1, 8).gpu, name="v100", peak_flops_per_s={"fp16": h100_cluster(1, 8).gpu.memory_bytes})

    with pytest.raises(InputError, match="GPU v100 has no peak rate for bf16, it has fp16"):
        peak_flops_per_s(gpu, "bf16")
