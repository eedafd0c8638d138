"""What the catalog holds: models, GPUs and clusters by name, each with where its numbers come from."""

from dataclasses import dataclass

from autotune.spec.cluster import GpuSpec
from autotune.spec.cluster_file import cluster_names, load_cluster
from autotune.spec.hardware import gpus, node_types
from autotune.spec.huggingface import load_model, model_names
from autotune.spec.model import ModelSpec
from autotune.units import format_bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class CatalogEntry:
    """One name of the catalog. summary: its sizes in a few words; source: datasheet, model card or paper."""

    name: str
    summary: str
    source: str


def catalog_models() -> tuple[CatalogEntry, ...]:
    """Models by name."""
    models = (load_model(name) for name in model_names())
    return tuple(CatalogEntry(name=model.name, summary=_model_summary(model), source=model.source) for model in models)


def catalog_gpus() -> tuple[CatalogEntry, ...]:
    """GPUs by name, without their aliases."""
    return tuple(
        CatalogEntry(
            name=name,
            summary=_gpu_summary(gpu.spec),
            source=gpu.source,
        )
        for name, gpu in gpus().items()
    )


def catalog_clusters() -> tuple[CatalogEntry, ...]:
    """NODESxGPUSxGPU for each GPU whose usual node is known, and the cluster files of the catalog."""
    usual = tuple(
        CatalogEntry(
            name=f"NODESx{node.gpus_per_node}x{name}",
            summary=f"{node.intra_node.name} inside a node, {node.inter_node.name} between nodes",
            source=node.source,
        )
        for name, node in node_types().items()
    )
    files = (load_cluster(name) for name in cluster_names())
    return usual + tuple(
        CatalogEntry(
            name=cluster.name,
            summary=f"{cluster.nodes} nodes of {cluster.gpus_per_node} {cluster.gpu.name}",
            source=cluster.source,
        )
        for cluster in files
    )


def _gpu_summary(gpu: GpuSpec) -> str:
    peaks = ", ".join(f"{name} {rate.value / 1e12:.0f}" for name, rate in gpu.peak_flops_per_s.items())
    return f"{format_bytes(gpu.usable_memory_bytes.value)} usable, dense peaks in TFLOP/s: {peaks}"


def _model_summary(model: ModelSpec) -> str:
    experts = f", {model.moe.num_experts} experts" if model.moe else ""
    return f"{model.architecture}, {model.num_hidden_layers} layers of width {model.hidden_size}{experts}"
