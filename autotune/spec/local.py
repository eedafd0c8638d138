"""This very machine as a ClusterSpec, from what a probe measured of it."""

from autotune.errors import InputError
from autotune.spec.cluster import ClusterSpec, GpuSpec, LinkSpec
from autotune.spec.figure import Basis, Figure
from autotune.spec.hardware import gpu_of_device
from autotune.spec.probe import MachineProbe

LOCAL = "local"


def local_cluster(probe: MachineProbe, gpus: int | None = None) -> ClusterSpec:
    """One node with the probed GPUs, or CPU processes; `gpus` takes fewer (or, of CPU processes, more) of them.

    Raises InputError where the machine does not have so many GPUs.
    """
    count = probe.gpus if gpus is None else gpus
    if count < 1 or (probe.device == "cuda" and count > probe.gpus):
        message = f"{count} GPUs are asked of a machine with {probe.gpus}; ask for 1 to {probe.gpus}"
        raise InputError.one(message, where="--cluster local")
    link = _link(probe)
    return ClusterSpec(
        name=LOCAL,
        nodes=1,
        gpus_per_node=count,
        gpu=_gpu(probe),
        intra_node=link,
        inter_node=link,
        nvlink_domain_gpus=count,
        host_memory_bytes=_measured(probe, probe.host_memory_bytes),
        local=True,
        source=f"this machine: {probe.gpus} x {probe.name}, {probe.cores} cores, measured {probe.date}",
    )


def _gpu(probe: MachineProbe) -> GpuSpec:
    """A GPU of the catalog keeps its datasheet rates, so that utilisation means the same as elsewhere, and takes its
    efficiencies from the probe; of any other device the measured rates are the peaks, at an efficiency of 1.
    """
    known = gpu_of_device(probe.name) if probe.device == "cuda" else None
    usable = _measured(probe, probe.usable_memory_bytes)
    launch = _measured(probe, probe.kernel_launch_s)
    if known is None:
        return GpuSpec(
            name=probe.name,
            device=probe.device,
            memory_bytes=_measured(probe, probe.memory_bytes),
            usable_memory_bytes=usable,
            memory_bandwidth_bytes_per_s=_measured(probe, probe.memory_bandwidth_bytes_per_s),
            peak_flops_per_s={name: _measured(probe, rate) for name, rate in probe.gemm_flops_per_s.items()},
            gemm_efficiency=_measured(probe, 1.0, "of the measured rate"),
            memory_efficiency=_measured(probe, 1.0, "of the measured rate"),
            kernel_launch_s=launch,
        )
    spec = known.spec
    shares = {
        name: rate / spec.peak_flops_per_s[name].value
        for name, rate in probe.gemm_flops_per_s.items()
        if name in spec.peak_flops_per_s
    }
    share = shares.get("bf16", next(iter(shares.values()), 0.0))
    memory_share = probe.memory_bandwidth_bytes_per_s / spec.memory_bandwidth_bytes_per_s.value
    return GpuSpec(
        name=spec.name,
        memory_bytes=spec.memory_bytes,
        usable_memory_bytes=usable,
        memory_bandwidth_bytes_per_s=spec.memory_bandwidth_bytes_per_s,
        peak_flops_per_s=spec.peak_flops_per_s,
        gemm_efficiency=_measured(probe, min(share, 1.0), "of the datasheet rate") if share else spec.gemm_efficiency,
        memory_efficiency=_measured(probe, min(memory_share, 1.0), "of the datasheet rate"),
        kernel_launch_s=launch,
    )


def _link(probe: MachineProbe) -> LinkSpec:
    """Between two processes; one alone has none, and moves data at the rate of its memory."""
    alone = probe.link_bandwidth_bytes_per_s <= 0
    rate = probe.memory_bandwidth_bytes_per_s if alone else probe.link_bandwidth_bytes_per_s
    return LinkSpec(
        name="nccl" if probe.device == "cuda" else "gloo",
        bandwidth_bytes_per_s=_measured(probe, rate, "its memory: one process has no link" if alone else ""),
        latency_s=_measured(probe, max(probe.link_latency_s, 0.0)),
        efficiency=_measured(probe, 1.0, "of the measured rate"),
    )


def _measured(probe: MachineProbe, value: float, note: str = "") -> Figure:
    source = f"this machine, {note}" if note else "this machine"
    return Figure(value=float(value), basis=Basis.MEASURED, source=source, date=probe.date)
