"""Seconds of single kernels: matrix products, attention, operations bound by memory, each with a launch floor."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from autotune.cost.precision import GRADIENT_BYTES
from autotune.errors import InputError
from autotune.spec.cluster import GpuSpec
from autotune.spec.figure import Basis, Figure
from autotune.spec.layout import FloatColumn
from autotune.spec.workload import Precision, Problem

WAVE_OUTPUTS: Final = Figure(
    value=108 * 128 * 128,
    basis=Basis.DATASHEET,
    source="NVIDIA Matrix Multiplication Background User's Guide, sections 2.3 and 3.2: 108 multiprocessors of an A100,"
    " one 128 x 128 tile of the output each; larger tiles are used where there are enough outputs",
    date="2023-02-01",
)
"""Outputs of a matrix product that a GPU computes at once; the last wave is half empty on average."""

TILE_ROWS: Final = 128
"""Rows of an output tile (same source): each expert of a grouped product wastes half a tile on average."""

FLASH_FORWARD_SHARE: Final = Figure(
    value=0.62,
    basis=Basis.INTERPOLATED,
    source="middle of the 50-73 % of peak that FlashAttention-2 reaches on A100 (Dao 2023, 2307.08691, abstract); on "
    "H100 between its 35 % and FlashAttention-3's 75 % (Shah et al. 2024, 2407.08608, abstract)",
    date="2024-07-11",
)
FLASH_BACKWARD_SHARE: Final = Figure(
    value=0.53,
    basis=Basis.INTERPOLATED,
    source="the forward share times 63/73, the best backward and forward shares of FlashAttention-2 on A100 (Dao 2023, "
    "2307.08691, section 4.1)",
    date="2023-07-17",
)

FLASH_BACKWARD_PRODUCTS: Final = 2.5
"""Backward over forward operations of fused attention: five products against two (Dao 2023, section 3.1.2)."""

BACKWARD_BYTES: Final = 2.0
"""Backward over forward bytes of an operation bound by memory: it reads the saved input and the gradient of its output
and writes the gradient of its input, where forward reads one tensor and writes one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rates:
    """Sustained rates of one GPU at the workload's precision. gradient_bytes: of one accumulated gradient."""

    product_flops_per_s: float
    attention_forward_flops_per_s: float
    attention_backward_flops_per_s: float
    memory_bytes_per_s: float
    launch_s: float
    wave_outputs: float
    gradient_bytes: int


def rates(problem: Problem) -> Rates:
    """The rates of the cluster's GPU. Raises InputError if it has no peak for the precision."""
    gpu = problem.cluster.gpu
    precision = problem.workload.precision
    product = peak_flops_per_s(gpu, precision) * gpu.gemm_efficiency.value
    # FP8 recipes leave attention in bf16.
    attention = peak_flops_per_s(gpu, "bf16" if precision == "fp8" else precision)
    fused = problem.workload.attention == "flash" and gpu.device == "cuda"
    forward_share = FLASH_FORWARD_SHARE.value if fused else gpu.gemm_efficiency.value
    backward_share = FLASH_BACKWARD_SHARE.value if fused else gpu.gemm_efficiency.value
    return Rates(
        product_flops_per_s=product,
        attention_forward_flops_per_s=attention * forward_share,
        attention_backward_flops_per_s=attention * backward_share,
        memory_bytes_per_s=gpu.memory_bandwidth_bytes_per_s.value * gpu.memory_efficiency.value,
        launch_s=gpu.kernel_launch_s.value,
        wave_outputs=WAVE_OUTPUTS.value if gpu.device == "cuda" else 0.0,
        gradient_bytes=GRADIENT_BYTES[problem.workload.gradient_dtype],
    )


def peak_flops_per_s(gpu: GpuSpec, precision: Precision) -> float:
    """The dense peak. Raises InputError if the GPU has none for that precision: nothing is assumed in its place."""
    if precision in gpu.peak_flops_per_s:
        return gpu.peak_flops_per_s[precision].value
    known = ", ".join(gpu.peak_flops_per_s)
    raise InputError.one(
        f"GPU {gpu.name} has no peak rate for {precision}, it has {known}; choose one of them, or add the rate to the "
        "cluster file",
        where="--precision",
    )


def product_s(rate: Rates, *, outputs: FloatColumn, inner: FloatColumn, moved_bytes: FloatColumn) -> FloatColumn:
    """One matrix product (or one grouped product).

        t = max(2 * k * (max(o, w/2) + w/2) / R, bytes / B, launch)

    o: outputs; k: inner dimension; w: outputs of one wave of tiles, half of the last being idle on average and less
    than one wave taking as long as one; R, B: sustained rates.
    """
    half_wave = rate.wave_outputs / 2
    compute = 2 * inner * (np.maximum(outputs, half_wave) + half_wave) / rate.product_flops_per_s
    return np.maximum(np.maximum(compute, moved_bytes / rate.memory_bytes_per_s), rate.launch_s)


def moving_s(rate: Rates, moved_bytes: FloatColumn, *, kernels: int = 1) -> FloatColumn:
    """Operations bound by memory: bytes over bandwidth, and the launch of each kernel at least."""
    return np.maximum(moved_bytes / rate.memory_bytes_per_s, kernels * rate.launch_s)


@dataclass(frozen=True, kw_only=True)
class Passes:
    """Seconds of an operation's forward pass and of the two halves of its backward pass."""

    forward_s: FloatColumn
    input_gradient_s: FloatColumn
    weight_gradient_s: FloatColumn

    def __add__(self, other: "Passes") -> "Passes":
        return Passes(
            forward_s=self.forward_s + other.forward_s,
            input_gradient_s=self.input_gradient_s + other.input_gradient_s,
            weight_gradient_s=self.weight_gradient_s + other.weight_gradient_s,
        )


def linear(
    rate: Rates,
    *,
    rows: FloatColumn,
    inputs: FloatColumn,
    outputs: FloatColumn,
    size: int,
    matrices: FloatColumn | int = 1,
) -> Passes:
    """A projection of `rows` tokens from `inputs` to `outputs` values, or `matrices` of them that share the rows.

    Every micro-batch's weight gradient is added to the accumulated one, which is read and written whole.
    """
    weights = matrices * inputs * outputs
    activations = size * (rows * inputs + rows * outputs)
    moved = activations + size * weights
    padding = np.where(np.asarray(matrices) > 1, matrices * TILE_ROWS / 2 * (rate.wave_outputs > 0), 0.0)
    padded = rows + padding
    return Passes(
        forward_s=product_s(rate, outputs=padded * outputs, inner=inputs, moved_bytes=moved),
        input_gradient_s=product_s(rate, outputs=padded * inputs, inner=outputs, moved_bytes=moved),
        weight_gradient_s=product_s(
            rate, outputs=weights, inner=rows / matrices, moved_bytes=activations + 2 * rate.gradient_bytes * weights
        ),
    )


def memory_bound(rate: Rates, moved_bytes: FloatColumn, *, kernels: int = 1) -> Passes:
    """An operation without weights that is bound by memory."""
    return Passes(
        forward_s=moving_s(rate, moved_bytes, kernels=kernels),
        input_gradient_s=moving_s(rate, BACKWARD_BYTES * moved_bytes, kernels=kernels),
        weight_gradient_s=np.zeros_like(moved_bytes),
    )
