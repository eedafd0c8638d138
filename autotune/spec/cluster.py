"""GpuSpec, LinkSpec, ClusterSpec: the machines. Every rate is a Figure, so its basis and source travel with it."""

from dataclasses import dataclass
from typing import Literal

from autotune.spec.figure import Figure

Device = Literal["cuda", "cpu"]


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuSpec:
    """One kind of GPU (or, with device "cpu", one CPU process that stands in for it).

    peak_flops_per_s: by precision ("bf16", "fp8", "fp32" …), dense, never the sparse figure; usable_memory_bytes: what
    a process can really allocate, below the marketing memory_bytes; gemm_efficiency: sustained share of the peak on
    large matrix products; memory_efficiency: sustained share of the memory bandwidth.
    """

    name: str
    device: Device = "cuda"
    memory_bytes: Figure
    usable_memory_bytes: Figure
    memory_bandwidth_bytes_per_s: Figure
    peak_flops_per_s: dict[str, Figure]
    gemm_efficiency: Figure
    memory_efficiency: Figure
    kernel_launch_s: Figure


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkSpec:
    """A link as one GPU sees it, one direction. efficiency: sustained share of the rate in large collectives."""

    name: str
    bandwidth_bytes_per_s: Figure
    latency_s: Figure
    efficiency: Figure


@dataclass(frozen=True, kw_only=True, slots=True)
class ClusterSpec:
    """Equal nodes of equal GPUs.

    nvlink_domain_gpus: GPUs that reach each other over `intra_node` (72 on NVL72 with 4 GPUs a node);
    host_memory_bytes: RAM of one node; local: it is this very machine.
    """

    name: str
    nodes: int
    gpus_per_node: int
    gpu: GpuSpec
    intra_node: LinkSpec
    inter_node: LinkSpec
    nvlink_domain_gpus: int
    host_memory_bytes: Figure
    local: bool = False
    source: str = ""

    @property
    def gpus(self) -> int:
        """GPUs in all."""
        return self.nodes * self.gpus_per_node
