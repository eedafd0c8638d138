"""Measures this machine in a few seconds: products, memory, launches of one process, and the link between two."""

import datetime
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch

from autotune.spec.load import to_json
from autotune.spec.probe import MachineProbe
from autotune.worker.files import write_json
from autotune.worker.link import Link, measure_link
from autotune.worker.machine import cores, device_name, host_memory_bytes, versions

MAX_CPU_PROCESSES = 8
"""CPU processes that stand in for GPUs: of more the start alone takes half a minute."""

_MEASURE_S = 0.3
_PRODUCT_ROWS = {"cpu": 512, "cuda": 8192}
"""CPUs without bf16 instructions were seen to do 1 GFLOP/s: 0.3 s for a product of 512 rows."""
_COPY_BYTES = {"cpu": 2**28, "cuda": 2**30}
"""Beyond every cache: the largest of a CPU has 1 GiB split over its dies, of a GPU 128 MiB."""
_LAUNCHES = 200

_DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


def write_probe(out: Path, *, gpus: int | None) -> None:
    """Measure and write the MachineProbe. gpus: devices, or CPU processes in their place, to count with; None: all."""
    write_json(out, to_json(probe(gpus=gpus)))


def probe(*, gpus: int | None) -> MachineProbe:
    """This machine. Raises ValueError where it does not have so many GPUs."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    count = _count(device, gpus)
    total_bytes, available_bytes = host_memory_bytes()
    if device.type == "cpu":
        torch.set_num_threads(max(1, cores() // count))
        memory_bytes, usable_bytes = total_bytes // count, available_bytes // count
    else:
        usable_bytes, memory_bytes = torch.cuda.mem_get_info(device)
    link = measure_link(device.type) if count > 1 else Link(bandwidth_bytes_per_s=0.0, latency_s=0.0)
    return MachineProbe(
        device="cuda" if device.type == "cuda" else "cpu",
        name=device_name(device),
        gpus=count,
        cores=cores(),
        memory_bytes=memory_bytes,
        usable_memory_bytes=usable_bytes,
        host_memory_bytes=total_bytes,
        gemm_flops_per_s={name: gemm_flops_per_s(device, dtype) for name, dtype in _DTYPES.items()},
        memory_bandwidth_bytes_per_s=copy_bytes_per_s(device),
        link_bandwidth_bytes_per_s=link.bandwidth_bytes_per_s,
        link_latency_s=link.latency_s,
        kernel_launch_s=launch_s(device),
        versions=versions(device),
        date=datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
    )


def _count(device: torch.device, gpus: int | None) -> int:
    if device.type == "cpu":
        return min(max(2, cores()), MAX_CPU_PROCESSES) if gpus is None else gpus
    there = torch.cuda.device_count()
    if gpus is not None and gpus > there:
        msg = f"{gpus} GPUs are asked of a machine with {there}; ask for 1 to {there}"
        raise ValueError(msg)
    return there if gpus is None else gpus


def gemm_flops_per_s(device: torch.device, dtype: torch.dtype) -> float:
    """Rate of a square product: 2·n³ operations."""
    rows = _PRODUCT_ROWS[device.type]
    left, right = (torch.randn(rows, rows, device=device).to(dtype) for _ in range(2))
    return 2 * rows**3 / _median_s(lambda: torch.matmul(left, right), device)


def copy_bytes_per_s(device: torch.device) -> float:
    """Rate of a copy, what is read and what is written together."""
    source = torch.ones(_COPY_BYTES[device.type], dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    return 2 * source.numel() / _median_s(lambda: target.copy_(source), device)


def launch_s(device: torch.device) -> float:
    """What an operation on one number takes from Python: the floor under every operation."""
    number = torch.ones(1, device=device)

    def many() -> None:
        for _ in range(_LAUNCHES):
            number.add_(0)

    return _median_s(many, device) / _LAUNCHES


def _median_s(operation: Callable[[], object], device: torch.device) -> float:
    """The median duration, after a first run that is not counted."""
    durations_s: list[float] = []
    operation()
    until_s = time.perf_counter() + _MEASURE_S
    while not durations_s or time.perf_counter() < until_s:
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        started_s = time.perf_counter()
        operation()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        durations_s.append(time.perf_counter() - started_s)
    return statistics.median(durations_s)
