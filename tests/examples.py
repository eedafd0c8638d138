"""Models, clusters and problems that many tests share, built by hand so that no test depends on the catalog's files."""

from autotune.spec.cluster import ClusterSpec, GpuSpec, LinkSpec
from autotune.spec.figure import Basis, Figure
from autotune.spec.model import ModelSpec, MoeSpec
from autotune.spec.workload import Problem, WorkloadSpec

GIB = 2**30


def llama_3_8b() -> ModelSpec:
    """meta-llama/Meta-Llama-3-8B config.json; the head is not tied. 8,030,261,248 parameters."""
    return ModelSpec(
        name="llama-3-8b",
        architecture="LlamaForCausalLM",
        hidden_size=4096,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=8,
        head_dim=128,
        intermediate_size=14336,
        vocab_size=128256,
        max_position_embeddings=8192,
    )


def llama_3_70b() -> ModelSpec:
    """meta-llama/Meta-Llama-3-70B config.json; the head is not tied. 70,553,706,496 parameters."""
    return ModelSpec(
        name="llama-3-70b",
        architecture="LlamaForCausalLM",
        hidden_size=8192,
        num_hidden_layers=80,
        num_attention_heads=64,
        num_key_value_heads=8,
        head_dim=128,
        intermediate_size=28672,
        vocab_size=128256,
        max_position_embeddings=8192,
    )


def qwen3_30b_a3b() -> ModelSpec:
    """Qwen/Qwen3-30B-A3B config.json: 128 experts, 8 per token, in every layer; no shared expert."""
    return ModelSpec(
        name="qwen3-30b-a3b",
        architecture="Qwen3MoeForCausalLM",
        hidden_size=2048,
        num_hidden_layers=48,
        num_attention_heads=32,
        num_key_value_heads=4,
        head_dim=128,
        intermediate_size=6144,
        vocab_size=151936,
        qk_norm=True,
        max_position_embeddings=40960,
        moe=MoeSpec(num_experts=128, experts_per_token=8, expert_intermediate_size=768),
    )


def tiny_model(
    *, layers: int = 4, heads: int = 4, kv_heads: int = 2, intermediate_size: int = 64, moe: MoeSpec | None = None
) -> ModelSpec:
    """A model small enough to count by hand: hidden 32, vocabulary 128."""
    return ModelSpec(
        name="tiny",
        architecture="LlamaForCausalLM",
        hidden_size=32,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_dim=8,
        intermediate_size=intermediate_size,
        vocab_size=128,
        max_position_embeddings=256,
        moe=moe,
    )


def h100_cluster(nodes: int, gpus_per_node: int) -> ClusterSpec:
    """Nodes of H100 SXM5 80 GB on NVLink 4 and 400 Gbit/s InfiniBand.

    Datasheet rates (NVIDIA H100 SXM: 989 TFLOP/s dense bf16, 3.35 TB/s, NVLink 900 GB/s both ways); round figures for
    what a datasheet does not say.
    """
    return ClusterSpec(
        name=f"{nodes}x{gpus_per_node}xh100",
        nodes=nodes,
        gpus_per_node=gpus_per_node,
        gpu=GpuSpec(
            name="h100",
            memory_bytes=_datasheet(80 * GIB),
            usable_memory_bytes=_round_figure(79 * GIB),
            memory_bandwidth_bytes_per_s=_datasheet(3.35e12),
            peak_flops_per_s={
                "bf16": _datasheet(989e12),
                "fp16": _datasheet(989e12),
                "fp8": _datasheet(1979e12),
                "fp32": _datasheet(67e12),
            },
            gemm_efficiency=_round_figure(0.7),
            memory_efficiency=_round_figure(0.8),
            kernel_launch_s=_round_figure(5e-6),
        ),
        intra_node=LinkSpec(
            name="nvlink4",
            bandwidth_bytes_per_s=_datasheet(450e9),
            latency_s=_round_figure(5e-6),
            efficiency=_round_figure(0.8),
        ),
        inter_node=LinkSpec(
            name="infiniband-ndr",
            bandwidth_bytes_per_s=_datasheet(50e9),
            latency_s=_round_figure(10e-6),
            efficiency=_round_figure(0.8),
        ),
        nvlink_domain_gpus=gpus_per_node,
        host_memory_bytes=_round_figure(2048 * GIB),
        source="hand-made for tests",
    )


def problem(
    *,
    model: ModelSpec | None = None,
    nodes: int = 1,
    gpus_per_node: int = 8,
    sequence_length: int = 4096,
    global_batch_size: int = 64,
) -> Problem:
    """A question about Llama-3 8B on one node of eight H100s, unless told otherwise."""
    return Problem(
        model=model or llama_3_8b(),
        cluster=h100_cluster(nodes, gpus_per_node),
        workload=WorkloadSpec(sequence_length=sequence_length, global_batch_size=global_batch_size),
    )


def _datasheet(value: float) -> Figure:
    return Figure(value=value, basis=Basis.DATASHEET, source="NVIDIA H100 datasheet", date="2023-03-01")


def _round_figure(value: float) -> Figure:
    return Figure(value=value, basis=Basis.DATASHEET, source="round figure for tests", date="2025-01-01")
