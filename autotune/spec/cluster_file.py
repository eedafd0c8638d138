"""ClusterSpec from a YAML file, or from a name NODESxGPUSxGPU such as 64x8xh100 over the usual node of that GPU.

A cluster file (an example: catalog/clusters/three-a100-nodes.yaml) holds

    nodes: 3                            equal nodes
    gpus_per_node: 4                    equal GPUs
    gpu: a100                           a catalog name, or a description (see `hardware`)
    intra_node: nvlink3                 a catalog name, or {name, bandwidth, latency, efficiency}
    inter_node: infiniband-hdr          the same; bandwidth is what one GPU has to itself, one direction
    host_memory: 512 GiB                RAM of one node

and may hold `name`, `nvlink_domain_gpus` (gpus_per_node if absent), `source` and `date`. Every value has its unit. A
plain value counts as a datasheet's, of the nearest `source` (else this file) and `date` (else the file's own day); a
value that was measured is written {value: 0.7, basis: measured, source: nccl-tests, date: 2024-12-31}. `gpu`,
`intra_node`, `inter_node` and `host_memory` may be left out where the GPU's usual node is known.
"""

import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from autotune.errors import InputError
from autotune.spec.catalog import CLUSTERS
from autotune.spec.cluster import ClusterSpec, GpuSpec, LinkSpec
from autotune.spec.figure import Basis, Figure
from autotune.spec.figures import Provenance, read_bytes, read_provenance
from autotune.spec.hardware import (
    NodeType,
    allow_gpu_keys,
    gpu_named,
    gpus,
    links,
    named_link,
    node_types,
    read_gpu,
    read_link,
    unknown_gpu,
)
from autotune.spec.load import names_a_file, read_file
from autotune.spec.local import local_cluster
from autotune.spec.reader import LARGEST_WHOLE, Reader, suggestion, too_large

__all__ = ["cluster_names", "load_cluster", "local_cluster"]

_NAME = re.compile(r"(\d{1,18})x(\d{1,18})x([A-Za-z][A-Za-z0-9._-]*)", re.IGNORECASE)
_KEYS = (
    "name", "nodes", "gpus_per_node", "gpu", "intra_node", "inter_node", "nvlink_domain_gpus", "host_memory", "source",
    "date",
)  # fmt: skip


def load_cluster(name_or_path: str) -> ClusterSpec:
    """The cluster of a name like 64x8xh100, of a catalog file's name, or of a YAML file. Raises InputError."""
    names = cluster_names()
    if name_or_path in names:
        return _read_cluster(CLUSTERS / f"{name_or_path}.yaml", where=f"{name_or_path}.yaml")
    if names_a_file(name_or_path):
        return _read_cluster(Path(name_or_path), where=name_or_path)
    match = _NAME.fullmatch(name_or_path)
    if match is None:
        raise InputError.one(
            f"'{name_or_path}' is not a cluster{suggestion(name_or_path, names)}; give NODESxGPUSxGPU such as "
            f"64x8xh100, a YAML file, local, or one of {', '.join(names)}",
            where="--cluster",
        )
    return _usual_cluster(name_or_path.lower(), nodes=int(match[1]), gpus_per_node=int(match[2]), gpu_name=match[3])


def cluster_names() -> tuple[str, ...]:
    """The cluster files of the catalog."""
    return tuple(sorted(path.stem for path in CLUSTERS.glob("*.yaml")))


def _usual_cluster(name: str, *, nodes: int, gpus_per_node: int, gpu_name: str) -> ClusterSpec:
    gpu = gpu_named(gpu_name)
    if gpu is None:
        raise InputError.one(unknown_gpu(gpu_name), where=f"--cluster {name}")
    node = node_types().get(gpu.spec.name)
    if node is None:
        message = (
            f"no usual node is known for {gpu.spec.name}, only for {', '.join(node_types())}; write a cluster file "
            f"with 'gpu: {gpu.spec.name}', intra_node, inter_node and host_memory"
        )
        raise InputError.one(message, where=f"--cluster {name}")
    if nodes < 1 or gpus_per_node < 1:
        message = f"{nodes} nodes of {gpus_per_node} GPUs is not positive; give at least 1x1"
        raise InputError.one(message, where=f"--cluster {name}")
    if nodes * gpus_per_node > LARGEST_WHOLE:
        raise InputError.one(too_large(nodes * gpus_per_node), where=f"--cluster {name}")
    return ClusterSpec(
        name=name,
        nodes=nodes,
        gpus_per_node=gpus_per_node,
        gpu=gpu.spec,
        intra_node=node.intra_node,
        inter_node=node.inter_node,
        nvlink_domain_gpus=_domain_gpus(node, nodes=nodes, gpus_per_node=gpus_per_node),
        host_memory_bytes=_host_memory(node, gpus_per_node),
        source=node.source,
    )


def _domain_gpus(node: NodeType, *, nodes: int, gpus_per_node: int) -> int:
    """The largest whole number of nodes that share the NVLink domain; a fat node has a domain of its usual size."""
    domain = node.nvlink_domain_gpus or node.gpus_per_node
    if domain >= gpus_per_node:
        return min(domain // gpus_per_node, nodes) * gpus_per_node if node.nvlink_domain_gpus else gpus_per_node
    return domain


def _host_memory(node: NodeType, gpus_per_node: int) -> Figure:
    usual = node.host_memory_bytes
    if gpus_per_node == node.gpus_per_node:
        return usual
    return replace(
        usual,
        value=usual.value * gpus_per_node / node.gpus_per_node,
        basis=Basis.INTERPOLATED,
        source=f"the share of {gpus_per_node} GPUs in a node of {node.gpus_per_node}: {usual.source}",
    )


def _read_cluster(path: Path, *, where: str) -> ClusterSpec:
    reader = Reader(read_file(path), where=where)
    reader.allow(_KEYS)
    day = datetime.fromtimestamp(path.stat().st_mtime, tz=UTC).date().isoformat()
    origin = read_provenance(reader, Provenance(source=where, date=day))
    nodes = reader.whole("nodes")
    gpus_per_node = reader.whole("gpus_per_node")
    gpu = _read_cluster_gpu(reader, origin)
    usual = node_types().get(gpu.name)
    cluster = ClusterSpec(
        name=reader.text("name", path.stem),
        nodes=nodes,
        gpus_per_node=gpus_per_node,
        gpu=gpu,
        intra_node=_read_cluster_link(reader, "intra_node", origin, usual.intra_node if usual else None),
        inter_node=_read_cluster_link(reader, "inter_node", origin, usual.inter_node if usual else None),
        nvlink_domain_gpus=reader.whole("nvlink_domain_gpus", gpus_per_node),
        host_memory_bytes=_host_memory(usual, gpus_per_node)
        if usual and "host_memory" not in reader
        else read_bytes(reader, "host_memory", origin),
        source=reader.text("source", where),
    )
    if cluster.nvlink_domain_gpus > cluster.gpus:
        message = (
            f"{cluster.nvlink_domain_gpus} is more than the {cluster.gpus} GPUs there are; give at most {cluster.gpus}"
        )
        reader.fault("nvlink_domain_gpus", message)
    reader.finish()
    return cluster


def _read_cluster_gpu(reader: Reader, origin: Provenance) -> GpuSpec:
    value = reader.data.get("gpu")
    stand_in = next(iter(gpus().values())).spec
    if isinstance(value, dict):
        part = reader.part("gpu")
        allow_gpu_keys(part)
        return read_gpu(part, origin)
    name = reader.text("gpu")
    gpu = gpu_named(name)
    if gpu is None and name:
        reader.fault("gpu", unknown_gpu(name))
    return gpu.spec if gpu else stand_in


def _read_cluster_link(reader: Reader, key: str, origin: Provenance, usual: LinkSpec | None) -> LinkSpec:
    if isinstance(reader.data.get(key), dict):
        return read_link(reader.part(key), origin, name=key)
    if key not in reader and usual is not None:
        return usual
    if key not in reader:
        reader.missing(key)
        return next(iter(links().values()))
    return named_link(reader, key)
