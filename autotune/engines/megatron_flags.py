"""Megatron-LM's flags: tables from axes to flags, for both directions, and the flags of a model and a workload.

Read in megatron/training/arguments.py and megatron/core/transformer/transformer_config.py of NVIDIA/Megatron-LM, main
of 2026-08-22 (d98e8a6, core 0.20), and looked up in core_v0.16.0 and core_v0.18.0.
"""

from typing import Final

from autotune.engines.script import Flags
from autotune.spec.axes import AxisValue
from autotune.spec.layout import Layout
from autotune.spec.model import ModelSpec
from autotune.spec.workload import Problem, WorkloadSpec

DEGREE_FLAGS: Final[dict[str, str]] = {
    "tp": "--tensor-model-parallel-size",
    "pp": "--pipeline-model-parallel-size",
    "cp": "--context-parallel-size",
    "ep": "--expert-model-parallel-size",
    "etp": "--expert-tensor-parallel-size",
    "micro_batch_size": "--micro-batch-size",
}
"""Axes whose value is a flag's value. dp_shard has none: it is what the number of GPUs leaves over."""

CHUNKS_FLAG: Final = "--num-virtual-stages-per-pipeline-rank"
"""vpp; more than 1 means the interleaved schedule, 1 means 1F1B."""

REPLICAS_FLAG: Final = "--num-distributed-optimizer-instances"
"""dp_replicate, where zero_stage shards anything; without, all data-parallel ranks are replicas."""

FSDP: Final[Flags] = [
    ("--use-distributed-optimizer",),
    ("--use-megatron-fsdp",),
    ("--ckpt-format", "fsdp_dtensor"),
    ("--no-gradient-accumulation-fusion",),
]

CHOICE_FLAGS: Final[dict[str, dict[AxisValue, Flags]]] = {
    "sequence_parallel": {False: [], True: [("--sequence-parallel",)]},
    "zero_stage": {
        0: [],
        1: [("--use-distributed-optimizer",)],
        2: [*FSDP, ("--data-parallel-sharding-strategy", "optim_grads")],
        3: [*FSDP, ("--data-parallel-sharding-strategy", "optim_grads_params"), ("--init-model-with-meta-device",)],
    },
    "recompute": {
        "none": [],
        "selective": [("--recompute-granularity", "selective"), ("--recompute-modules", "core_attn")],
        "full": [
            ("--recompute-granularity", "full"), ("--recompute-method", "uniform"), ("--recompute-num-layers", "1"),
        ],
    },
}  # fmt: skip
"""Axes whose value is a set of flags."""

_PRECISION: Final[dict[str, Flags]] = {
    "bf16": [("--bf16",)],
    "fp16": [("--fp16",)],
    "fp32": [],
    "fp8": [("--bf16",), ("--fp8-format", "hybrid")],
}
_OPTIMIZER: Final = {"adamw": "adam", "sgd": "sgd"}
_ATTENTION: Final = {"flash": "fused", "unfused": "unfused"}
"""Megatron's "flash" is the flash-attn package; "fused" is cuDNN's kernel, which holds no scores either."""


def layout_flags(layout: Layout, model: ModelSpec) -> Flags:
    """Flags of every axis, also the 1s, so that nothing is taken from an older setting."""
    flags: Flags = [(flag, str(getattr(layout, axis))) for axis, flag in DEGREE_FLAGS.items()]
    flags += _pipeline_flags(layout, model)
    for axis, choices in CHOICE_FLAGS.items():
        flags += choices[getattr(layout, axis)]
    if layout.zero_stage > 0:
        flags += [(REPLICAS_FLAG, str(layout.dp_replicate)), ("--overlap-param-gather",)]
    if layout.dp > 1:
        flags.append(("--overlap-grad-reduce",))
    return flags


def _pipeline_flags(layout: Layout, model: ModelSpec) -> Flags:
    """Chunks, and what counts as a layer when layers are dealt out to stages: they must come out even."""
    stages, layers = layout.pp * layout.vpp, model.num_hidden_layers
    chunks = (CHUNKS_FLAG, str(layout.vpp))
    loss, embedding = ("--account-for-loss-in-pipeline-split",), ("--account-for-embedding-in-pipeline-split",)
    for counted in ([], [loss], [loss, embedding]):
        if (layers + len(counted)) % stages == 0:
            return [chunks, *counted]
    assert (layers + 2 + model.mtp_layers) % stages == 0, "the rule even-stages lets nothing else through"
    return [("--pipeline-model-parallel-layout", _stage_string(layers, model.mtp_layers, stages))]


def _stage_string(layers: int, mtp_layers: int, stages: int) -> str:
    """Embedding, layers, multi-token prediction and loss, a letter each, as in "Ettt|tttt|ttmL"."""
    places = "E" + "t" * layers + "m" * mtp_layers + "L"
    size = len(places) // stages
    return "|".join(places[start : start + size] for start in range(0, len(places), size))


def workload_flags(workload: WorkloadSpec) -> Flags:
    """Batch, precision, optimizer and attention kernel. The micro-batch is an axis."""
    flags: Flags = [
        ("--global-batch-size", str(workload.global_batch_size)),
        ("--seq-length", str(workload.sequence_length)),
        ("--optimizer", _OPTIMIZER[workload.optimizer]),
        ("--attention-backend", _ATTENTION[workload.attention]),
    ]
    flags += _PRECISION[workload.precision]
    if workload.gradient_dtype == "bf16":
        flags.append(("--grad-reduce-in-bf16",))
    return flags


def model_flags(problem: Problem) -> Flags:
    """The network. What config.json says of it and no flag can is refused by a launch rule."""
    model = problem.model
    positions = max(model.max_position_embeddings, model.learned_positions, problem.workload.sequence_length)
    flags: Flags = [
        ("--num-layers", str(model.num_hidden_layers)),
        ("--hidden-size", str(model.hidden_size)),
        ("--ffn-hidden-size", str(model.intermediate_size)),
        ("--num-attention-heads", str(model.num_attention_heads)),
        ("--normalization", {"rmsnorm": "RMSNorm", "layernorm": "LayerNorm"}[model.norm]),
        ("--max-position-embeddings", str(positions)),
        ("--position-embedding-type", "learned_absolute" if model.learned_positions else "rope"),
        ("--attention-dropout", "0.0"),
        ("--hidden-dropout", "0.0"),
    ]
    switches = {
        "--swiglu": model.gated_mlp,
        "--disable-bias-linear": not model.mlp_bias,
        "--add-qkv-bias": model.qkv_bias and not model.mlp_bias,
        "--qk-layernorm": model.qk_norm,
        "--untie-embeddings-and-output-weights": not model.tied_embeddings,
    }
    flags += [(flag,) for flag, on in switches.items() if on]
    if model.mtp_layers:
        flags.append(("--mtp-num-layers", str(model.mtp_layers)))
    return [*flags, *_attention_flags(model), *_expert_flags(model)]


def _attention_flags(model: ModelSpec) -> Flags:
    if model.mla is None:
        flags: Flags = [("--kv-channels", str(model.head_dim))]
        if model.num_key_value_heads != model.num_attention_heads:
            flags += [("--group-query-attention",), ("--num-query-groups", str(model.num_key_value_heads))]
        return flags
    latent = model.mla
    flags = [
        ("--multi-latent-attention",),
        ("--kv-lora-rank", str(latent.kv_lora_rank)),
        ("--qk-head-dim", str(latent.qk_nope_head_dim)),
        ("--qk-pos-emb-head-dim", str(latent.qk_rope_head_dim)),
        ("--v-head-dim", str(latent.v_head_dim)),
    ]
    if latent.q_lora_rank is not None:
        flags.append(("--q-lora-rank", str(latent.q_lora_rank)))
    return flags


def _expert_flags(model: ModelSpec) -> Flags:
    if model.moe is None:
        return []
    moe = model.moe
    flags: Flags = [
        ("--num-experts", str(moe.num_experts)),
        ("--moe-router-topk", str(moe.experts_per_token)),
        ("--moe-ffn-hidden-size", str(moe.expert_intermediate_size)),
        ("--moe-layer-freq", _expert_pattern(model)),
        ("--moe-grouped-gemm",),
        ("--moe-token-dispatcher-type", "alltoall"),
    ]
    if moe.shared_intermediate_size:
        flags.append(("--moe-shared-expert-intermediate-size", str(moe.shared_intermediate_size)))
    if moe.shared_expert_gate:
        flags.append(("--moe-shared-expert-gate",))
    if moe.router_bias:  # one value per expert in place of a balancing loss, as in DeepSeek-V3
        return [*flags, ("--moe-router-enable-expert-bias",), ("--moe-router-score-function", "sigmoid")]
    return [*flags, ("--moe-router-load-balancing-type", "aux_loss"), ("--moe-aux-loss-coeff", "1e-3")]


def _expert_pattern(model: ModelSpec) -> str:
    """1 where a layer has experts, as in "[0,0,0,1,1]"."""
    assert model.moe is not None
    dense, every = model.moe.dense_layers, model.moe.moe_layer_frequency
    behind = range(1, model.num_hidden_layers - dense + 1)
    return f"[{','.join(['0'] * dense + [str(int(index % every == 0)) for index in behind])}]"
