"""Figures of memory that engines share, because they come from the driver, from NCCL or from PyTorch's allocator."""

from typing import Final

from autotune.spec.figure import Basis, Figure
from autotune.units import GIB, KIB

OUTSIDE_PER_PEER_BYTES: Final = Figure(
    value=0.4 * GIB,
    basis=Basis.MEASURED,
    source="NVIDIA-NeMo/Automodel#3408: NCCL asks for 0.4 GiB for each peer",
    date="2026-08-22",
)

OUTSIDE_BYTES: Final = Figure(
    value=6.5 * GIB - 2 * OUTSIDE_PER_PEER_BYTES.value,
    basis=Basis.MEASURED,
    source="basetenlabs/ml-cookbook#105: 35 GiB by the driver, 28.4 by PyTorch, and 56, 49.5: 6.5 GiB apart on 8 GPUs "
    "with tp=8, of which two peers of one ring are counted apart",
    date="2026-08-22",
)

CPU_OUTSIDE_BYTES: Final = Figure(
    value=300_764 * KIB,
    basis=Basis.MEASURED,
    source="VmHWM of a process that has imported torch 2.13.0+cpu and joined a gloo group of two",
    date="2026-12-01",
)

NOTHING_PER_PEER: Final = Figure(
    value=0.0,
    basis=Basis.MEASURED,
    source="gloo's buffers are in the VmHWM of a process that has joined a group",
    date="2026-12-01",
)

ALLOCATOR_SLACK: Final = Figure(
    value=0.04,
    basis=Basis.MEASURED,
    source="NVIDIA/Megatron-LM#525: 29.97 GiB reserved, 28.8 GiB allocated when it ran out",
    date="2026-08-22",
)

UPPER_BOUND: Final = Figure(
    value=1.08,
    basis=Basis.INTERPOLATED,
    source="a margin until residuals of measured runs replace it; with less than 5 % the same run fits for some and "
    "not for others (karpathy/nanochat#443)",
    date="2026-12-01",
)
