"""GPUs, links and usual nodes: read from the catalog by exact name, or from a description in a cluster file.

A GPU is described by

    name: mine                          memory: 80 GiB              usable_memory: 79.1 GiB
    memory_bandwidth: 3350 GB/s         memory_efficiency: 0.8      kernel_launch: 3 us
    peak: {bf16: 989 TFLOP/s}           gemm_efficiency: 0.69

and a link by `name`, `bandwidth` (of one GPU, one direction), `latency` and `efficiency`. Peaks are dense.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from autotune.spec.catalog import GPUS, LINKS, NODES
from autotune.spec.cluster import GpuSpec, LinkSpec
from autotune.spec.figure import Figure
from autotune.spec.figures import (
    Provenance,
    read_bytes,
    read_bytes_per_s,
    read_flops_per_s,
    read_provenance,
    read_seconds,
    read_share,
)
from autotune.spec.load import read_yaml
from autotune.spec.reader import Reader, suggestion

PRECISIONS = ("bf16", "fp16", "fp8", "fp32", "tf32", "fp4")
_GPU_KEYS = (
    "name", "device", "memory", "usable_memory", "memory_bandwidth", "peak", "gemm_efficiency", "memory_efficiency",
    "kernel_launch", "source", "date",
)  # fmt: skip
_LINK_KEYS = ("name", "bandwidth", "latency", "efficiency", "source", "date")
_NODE_KEYS = (
    "gpus_per_node", "nvlink_domain_gpus", "intra_node", "inter_node", "host_memory", "source", "date",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class CatalogGpu:
    """A GPU of the catalog. aliases: its other names; device_names: what the driver calls it."""

    spec: GpuSpec
    aliases: tuple[str, ...]
    device_names: tuple[str, ...]
    source: str


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeType:
    """The usual node of a GPU. nvlink_domain_gpus: None where the node is the domain."""

    gpus_per_node: int
    nvlink_domain_gpus: int | None
    intra_node: LinkSpec
    inter_node: LinkSpec
    host_memory_bytes: Figure
    source: str


@cache
def gpus() -> dict[str, CatalogGpu]:
    """GPUs of the catalog by name."""
    reader, nowhere = _catalog(GPUS)
    found: dict[str, CatalogGpu] = {}
    for name in reader.data:
        part = reader.part(name)
        part.allow((*_GPU_KEYS, "aliases", "device_names"))
        found[name] = CatalogGpu(
            spec=read_gpu(part, nowhere, name=name),
            aliases=_words(part, "aliases"),
            device_names=_words(part, "device_names"),
            source=part.text("source"),
        )
    reader.finish()
    return found


@cache
def links() -> dict[str, LinkSpec]:
    """Links of the catalog by name."""
    reader, nowhere = _catalog(LINKS)
    found = {name: read_link(reader.part(name), nowhere, name=name) for name in reader.data}
    reader.finish()
    return found


@cache
def node_types() -> dict[str, NodeType]:
    """Usual nodes by the name of their GPU."""
    reader, nowhere = _catalog(NODES)
    found = {name: _read_node_type(reader.part(name), nowhere) for name in reader.data}
    reader.finish()
    return found


def gpu_named(name: str) -> CatalogGpu | None:
    """The GPU of exactly that name or alias, upper or lower case; None if there is none."""
    wanted = name.lower()
    return next((gpu for key, gpu in gpus().items() if wanted == key or wanted in gpu.aliases), None)


def gpu_of_device(device_name: str) -> CatalogGpu | None:
    """The GPU whose driver name is exactly that; None if there is none."""
    return next((gpu for gpu in gpus().values() if device_name in gpu.device_names), None)


def unknown_gpu(name: str) -> str:
    """The sentence for a GPU that the catalog does not have, with the way out."""
    near = suggestion(name.lower(), gpu_names())
    return (
        f"the GPU '{name}' is not in the catalog{near}, which has {', '.join(gpus())}; describe it in a cluster file "
        "under 'gpu': name, memory, usable_memory, memory_bandwidth, peak, gemm_efficiency, memory_efficiency, "
        "kernel_launch"
    )


def gpu_names() -> tuple[str, ...]:
    """All names of GPUs, aliases too."""
    return tuple(name for key, gpu in gpus().items() for name in (key, *gpu.aliases))


def read_gpu(reader: Reader, origin: Provenance, *, name: str = "") -> GpuSpec:
    """A described GPU; its faults are noted in the reader. The caller says which keys are allowed."""
    origin = read_provenance(reader, origin)
    peaks = reader.part("peak")
    peaks.allow(PRECISIONS)
    if not peaks.data and "peak" in reader:
        peaks.fault("", "names no precision; give for example {bf16: 989 TFLOP/s}")
    spec = GpuSpec(
        name=reader.text("name", name or None),
        device=_device(reader),
        memory_bytes=read_bytes(reader, "memory", origin),
        usable_memory_bytes=read_bytes(reader, "usable_memory", origin),
        memory_bandwidth_bytes_per_s=read_bytes_per_s(reader, "memory_bandwidth", origin),
        peak_flops_per_s={
            key: read_flops_per_s(peaks, key, origin) for key in peaks.data if key in PRECISIONS
        },
        gemm_efficiency=read_share(reader, "gemm_efficiency", origin),
        memory_efficiency=read_share(reader, "memory_efficiency", origin),
        kernel_launch_s=read_seconds(reader, "kernel_launch", origin),
    )  # fmt: skip
    if not reader.faults and spec.usable_memory_bytes.value > spec.memory_bytes.value:
        usable, whole = reader.data["usable_memory"], reader.data["memory"]
        reader.fault(
            "usable_memory", f"{usable} is more than the memory, {whole}; a process gets less than the device has"
        )
    return spec


def allow_gpu_keys(reader: Reader) -> None:
    """A fault for every key that does not describe a GPU."""
    reader.allow(_GPU_KEYS)


def read_link(reader: Reader, origin: Provenance, *, name: str = "") -> LinkSpec:
    """A described link; its faults are noted in the reader."""
    reader.allow(_LINK_KEYS)
    origin = read_provenance(reader, origin)
    return LinkSpec(
        name=reader.text("name", name or None),
        bandwidth_bytes_per_s=read_bytes_per_s(reader, "bandwidth", origin),
        latency_s=read_seconds(reader, "latency", origin),
        efficiency=read_share(reader, "efficiency", origin),
    )


def named_link(reader: Reader, key: str) -> LinkSpec:
    """The link of the catalog that a key names; an unknown name is noted in the reader."""
    name = reader.choice(key, links())
    return links().get(name, next(iter(links().values())))


def _read_node_type(reader: Reader, origin: Provenance) -> NodeType:
    reader.allow(_NODE_KEYS)
    origin = read_provenance(reader, origin)
    return NodeType(
        gpus_per_node=reader.whole("gpus_per_node"),
        nvlink_domain_gpus=reader.whole("nvlink_domain_gpus") if "nvlink_domain_gpus" in reader else None,
        intra_node=named_link(reader, "intra_node"),
        inter_node=named_link(reader, "inter_node"),
        host_memory_bytes=read_bytes(reader, "host_memory", origin),
        source=origin.source,
    )


def _catalog(path: Path) -> tuple[Reader, Provenance]:
    return Reader(read_yaml(path), where=path.name), Provenance(source="", date="")


def _device(reader: Reader) -> Literal["cuda", "cpu"]:
    return "cpu" if reader.choice("device", ("cuda", "cpu"), "cuda") == "cpu" else "cuda"


def _words(reader: Reader, name: str) -> tuple[str, ...]:
    value = reader.data.get(name, [])
    words: Iterable[object] = value if isinstance(value, list) else [value]
    return tuple(str(word) for word in words)
