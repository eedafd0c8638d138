"""The cluster of a measured run: GPU and usual node from the catalog, links at the nominal rates of the row."""

import re
from dataclasses import replace
from typing import Final

from autotune.spec.cluster import ClusterSpec, GpuSpec, LinkSpec
from autotune.spec.figure import Basis, Figure
from autotune.spec.hardware import CatalogGpu, NodeType, gpu_named, gpu_of_device, links, node_types
from autotune.spec.measured_row import NotDescribedError, Row
from autotune.spec.measured_words import NODES_LIKE
from autotune.units import GIB, parse_bytes_per_s

_MEMORY_IN_NAME = re.compile(r"(\d+)gb(?![0-9])")
_KIND = re.compile(r"(?:nvidia |amd )?([a-z]+\d+[a-z]*)(?:[- ](.*))?")
_ONE_OF_A_KIND = re.compile(r"sxm\d*|oam|\d+gb|nvl72|hbm3")
_SAME: Final = 0.01  # printed rates are rounded; a link within 1 % of a catalog one is that link
_SAME_MEMORY: Final = 0.07  # 80 GB of a name are the catalog's 80 GiB
_DATE: Final = "2026-12-01"


def cluster_of(row: Row) -> ClusterSpec:
    """The machines of a run. Raises NotDescribedError for a GPU, a count or a link that is not known."""
    gpu = gpu_of(row)
    gpus = gpus_of(row)
    node = node_types().get(gpu.name) or node_types().get(NODES_LIKE.get(gpu.name, ""))
    if node is None:
        message = f"no usual node is known for the GPU {gpu.name}"
        raise NotDescribedError(message)
    per_node = min(row.whole("gpus_per_node") or node.gpus_per_node, gpus)
    nodes = -(-gpus // per_node)
    return ClusterSpec(
        name=f"{nodes}x{per_node}x{gpu.name}",
        nodes=nodes,
        gpus_per_node=per_node,
        gpu=gpu,
        intra_node=_link(row, "intra_gbps", node.intra_node),
        inter_node=_link(row, "inter_gbps", node.inter_node),
        nvlink_domain_gpus=_domain(row, node, nodes, per_node),
        host_memory_bytes=node.host_memory_bytes,
        source=row.stated("source"),
    )


def gpus_of(row: Row) -> int:
    """How many GPUs; where only memory counts and nothing is sharded over data-parallel ranks, one replica's."""
    stated = row.whole("gpus")
    nothing_sharded = (
        row.whole("zero_stage") == 0 and not row.flag("optimizer_sharding") and (row.whole("ep") or 1) == 1
    )
    if stated is None and nothing_sharded and row.stated("use") == "memory_only":
        replica = row.needed("tp") * row.needed("pp") * (row.whole("cp") or 1)
        row.note(f"the GPUs are taken as the {replica} of one replica, whose memory does not depend on the others")
        return replica
    return row.needed("gpus")


def gpu_of(row: Row) -> GpuSpec:
    """The catalog's GPU; where the name states another size of memory, with that size."""
    name = row.stated("gpu")
    if not name:
        message = "the GPU is not stated"
        raise NotDescribedError(message)
    found = _named(name)
    if found is None:
        message = f"the GPU '{name}' is not in the catalog"
        raise NotDescribedError(message)
    gpu = found.spec
    _note_what_the_name_adds(row, name, gpu)
    stated = _MEMORY_IN_NAME.search(name.lower())
    if stated is None or abs(int(stated.group(1)) * GIB / gpu.memory_bytes.value - 1) < _SAME_MEMORY:
        return gpu
    row.note(f"the GPU is the catalog's {gpu.name} with the {stated.group(1)} GB of '{name}'")
    share = int(stated.group(1)) * GIB / gpu.memory_bytes.value
    return replace(
        gpu,
        memory_bytes=_scaled(gpu.memory_bytes, share, name),
        usable_memory_bytes=_scaled(gpu.usable_memory_bytes, share, name),
    )


def _named(name: str) -> CatalogGpu | None:
    """The catalog's GPU of exactly that name, of the driver's name, or of its kind: "A100-SXM4-40GB" is an a100-40gb.

    A PCIe card is none of the boards with NVLink, and "gb300" is no "b300".
    """
    whole = name.lower()
    found = gpu_named(whole) or gpu_of_device(name)
    parts = _KIND.fullmatch(whole)
    if found is not None or parts is None:
        return found
    kind = f"{parts.group(1)}-pcie" if "pcie" in whole else parts.group(1)
    memory = _MEMORY_IN_NAME.search(whole)
    sizes = (f"{kind}-{memory.group(1)}gb", f"{kind}-{memory.group(1)}") if memory else ()
    return next((gpu for candidate in (*sizes, kind) if (gpu := gpu_named(candidate)) is not None), None)


def _note_what_the_name_adds(row: Row, name: str, gpu: GpuSpec) -> None:
    parts = _KIND.fullmatch(name.lower())
    words = re.split(r"[- ]", parts.group(2) or "") if parts else []
    if any(word and word not in gpu.name and not _ONE_OF_A_KIND.fullmatch(word) for word in words):
        row.note(f"'{name}' is taken as the catalog's {gpu.name}, with its rates")


def _scaled(figure: Figure, share: float, name: str) -> Figure:
    source = f"the share of '{name}': {figure.source}"
    return Figure(value=figure.value * share, basis=Basis.INTERPOLATED, source=source, date=figure.date)


def _link(row: Row, column: str, usual: LinkSpec) -> LinkSpec:
    """The usual link at the nominal rate of the row; another link of the catalog where it has exactly that rate."""
    rate_gbit = row.number(column)
    if rate_gbit is None:
        return usual
    rate = parse_bytes_per_s(f"{rate_gbit} Gbit/s")
    for link in (usual, *links().values()):
        if abs(rate / link.bandwidth_bytes_per_s.value - 1) < _SAME:
            return link
    nominal = Figure(value=rate, basis=Basis.DATASHEET, source=f"{column} of {row.stated('source')}", date=_DATE)
    return replace(usual, name=f"{usual.name} at {rate_gbit:g} Gbit/s", bandwidth_bytes_per_s=nominal)


def _domain(row: Row, node: NodeType, nodes: int, per_node: int) -> int:
    """GPUs that reach each other over the intra-node link: a node, or as many whole nodes as a stated domain holds."""
    stated = row.word("nvlink_domain")
    domain = int(stated) if stated.isdecimal() else node.nvlink_domain_gpus or per_node
    return max(min(domain // per_node, nodes), 1) * per_node
