"""MachineProbe: what `python -m autotune.worker probe` measured of the machine it ran on."""

from dataclasses import dataclass

from autotune.spec.cluster import Device


@dataclass(frozen=True, kw_only=True, slots=True)
class MachineProbe:
    """This machine, measured in seconds.

    name: the device's own name ("NVIDIA H100 80GB HBM3", or the CPU's); gpus: devices, or CPU processes that stand in
    for them; memory_bytes and usable_memory_bytes: of one of them; gemm_flops_per_s: sustained, by precision, one
    process with its share of the cores; link_*: one process to the others over nccl or gloo.
    """

    device: Device
    name: str
    gpus: int
    cores: int
    memory_bytes: int
    usable_memory_bytes: int
    host_memory_bytes: int
    gemm_flops_per_s: dict[str, float]
    memory_bandwidth_bytes_per_s: float
    link_bandwidth_bytes_per_s: float
    link_latency_s: float
    kernel_launch_s: float
    versions: dict[str, str]
    date: str
