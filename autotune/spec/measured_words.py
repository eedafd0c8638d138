"""Words of measured runs: what sources call GPUs, schedules, precisions and frameworks, and what ours is for it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from autotune.spec.workload import Attention, Precision


@dataclass(frozen=True, kw_only=True, slots=True)
class Framework:
    """A framework in the words of a source.

    word: in the framework's name, lower case; engines: whose habits describe it, the best first, of which the first
    that there is counts; expert_tensor_parallel: experts follow tp unless the run says otherwise; reason: why.
    """

    word: str
    engines: tuple[str, ...]
    expert_tensor_parallel: bool = False
    reason: str


FRAMEWORKS: Final = (
    Framework(word="torchtitan", engines=("torchtitan",), reason="the engine of that name"),
    Framework(
        word="zero-3", engines=("deepspeed", "torch"),
        reason="ZeRO-3 shards weights, gradients and optimizer as PyTorch's FSDP does",
    ),
    Framework(
        word="zero3", engines=("deepspeed", "torch"),
        reason="ZeRO-3 shards weights, gradients and optimizer as PyTorch's FSDP does",
    ),
    Framework(word="fsdp", engines=("torch",), reason="PyTorch's FSDP, whose habits engine torch describes"),
    Framework(
        word="automodel", engines=("torch",), reason="FSDP2 of PyTorch over Hugging Face models"
    ),
    Framework(
        word="nanotron", engines=("nanotron", "megatron-lm"),
        reason="nanotron splits tensors, stages and optimizer states as Megatron-LM does, and keeps bf16 weights with "
        "fp32 gradients and an fp32 master copy",
    ),
    Framework(
        word="megatron", engines=("megatron-lm",), expert_tensor_parallel=True,
        reason="Megatron-LM, a release or a fork of it",
    ),
    Framework(
        word="nemo", engines=("megatron-lm",), expert_tensor_parallel=True, reason="NeMo runs Megatron-Core"
    ),
    Framework(
        word="primus", engines=("megatron-lm",), expert_tensor_parallel=True, reason="Primus runs Megatron-LM on ROCm"
    ),
    Framework(
        word="oneflow", engines=("megatron-lm",),
        reason="OneFlow-GPT repeats the model and the splits of Megatron-LM",
    ),
    Framework(
        word="deepspeed", engines=("deepspeed", "megatron-lm"),
        reason="DeepSpeed below stage 3 keeps whole weights and an fp32 master copy, as Megatron-LM does",
    ),
)  # fmt: skip
"""Read from above; the first word that a name holds decides."""

SHARDED_ELSEWHERE: Final = Framework(
    word="", engines=("torch",), reason="a framework that we do not know, which shards weights as FSDP does"
)
ELSEWHERE: Final = Framework(
    word="", engines=("megatron-lm",), reason="a framework that we do not know, which does not shard weights"
)


def framework_of(name: str, zero_stage: int) -> Framework:
    """The record of a framework's name; of an unknown one, that of what it shards."""
    known = next((record for record in FRAMEWORKS if record.word in name.lower()), None)
    return known or (SHARDED_ELSEWHERE if zero_stage == 3 else ELSEWHERE)


NODES_LIKE: Final[Mapping[str, str]] = {"a800": "a100", "h800": "h100", "b300": "b200", "gb300": "gb200"}
"""GPUs whose usual node is that of another one, with other links: sold in the same HGX boards and NVL72 racks."""

SCHEDULE_NAMES: Final[Mapping[str, str]] = {
    "": "1f1b",
    "none": "1f1b",
    "1f1b": "1f1b",
    "gpipe": "gpipe",
    "afab": "gpipe",
    "interleaved": "interleaved",
    "interleaved-1f1b": "interleaved",
    "breadth-first": "breadth-first",
    "looped-bfs": "breadth-first",
    "zb-1p": "zb-h1",
    "zb-h1": "zb-h1",
    "zb1p": "zb-h1",
    "zb-2p": "zb-h2",
    "zb-h2": "zb-h2",
    "zb2p": "zb-h2",
    "zb-v": "zb-v",
    "zbv": "zb-v",
    "v-half": "v-half",
    "v-min": "v-min",
    "interleaved-zb": "interleaved-zb",
    "dualpipe": "dualpipe",
    "dualpipev": "dualpipev",
    "chimera": "chimera",
    "hanayo": "hanayo",
    "bitpipe": "bitpipe",
    "seq1f1b": "seq1f1b",
    "chronos": "chronos",
}
"""Our names for the schedule names of sources (lower case)."""

SCHEDULE_VARIANTS: Final[Mapping[str, str]] = {
    "vocab": "shards the vocabulary over the pipeline, which no axis of a layout says",
    "interlaced": "shards the vocabulary over the pipeline, which no axis of a layout says",
    "redis": "moves layers between stages to make up for the vocabulary, which no axis of a layout says",
    "all-reduce optimizer sync": "waits for all stages before the update, which the schedule's own form does not",
}
"""Words in a schedule's name that make it another one, and what is different."""

_PRECISIONS: Final[tuple[tuple[str, Precision | None], ...]] = (
    ("nvfp4", None),
    ("mxfp4", None),
    ("fp4", None),
    ("mxfp8", "fp8"),
    ("fp8", "fp8"),
    ("float8", "fp8"),
    ("bf16", "bf16"),
    ("fp16", "fp16"),
    ("mixed 16-bit", "fp16"),
    ("tf32", None),
    ("fp32", "fp32"),
)


def precision_of(text: str) -> Precision | None:
    """The precision of the matrix products, None for one that has no word of ours. "mixed 16-bit" is fp16."""
    return next((ours for word, ours in _PRECISIONS if word in text.lower()), None)


def attention_of(text: str) -> Attention | None:
    """Fused or not, by the name of the kernel; None where there is no name."""
    name = text.lower()
    if not name:
        return None
    return "unfused" if any(word in name for word in ("unfused", "softmax", "local", "eager")) else "flash"


OUT_OF_REACH: Final[tuple[tuple[str, str, str], ...]] = (
    ("notes", "task=lora", "trains low-rank adapters only, which is not the training of a whole model"),
    ("model", "-lora", "trains low-rank adapters only, which is not the training of a whole model"),
    ("notes", "single layer timing", "times a single layer and not a step"),
    ("framework", "cpu offload", "offloads to the CPU, which no axis of a layout says"),
    ("notes", "muon", "its optimizer is Muon, which is neither of ours"),
    ("notes", "modelopt_distill", "holds a second model to distil from"),
    ("notes", "uneven_pipeline", "gives stages a number of layers of its own, which no axis of a layout says"),
    ("recompute", "every 2nd", "recomputes every second layer, which no axis of a layout says"),
    ("recompute", "full:block", "recomputes some layers of each stage, which no axis of a layout says"),
    ("status", "profile", "is a profile of layers and not a run"),
)
"""Column, words in it (lower case), and why such a run cannot be predicted."""

PASSED_OVER: Final[tuple[tuple[str, str], ...]] = (
    ("cpu_offloading_num_layers", "activations of some layers are offloaded to the host; taken as hidden"),
    ("moe_a2a_overlap=true", "the experts' all-to-all is overlapped with compute; not modelled"),
    ("async tp", "tensor-parallel communication is overlapped inside the products; not modelled"),
    ("partition-activations", "stored activations are split over tp; not modelled"),
)
"""Words in the notes (lower case), and what the prediction does not know of."""

RECOMPUTED_MODULES: Final[Mapping[str, str]] = {
    "core_attn": "core_attention",
    "core_attention": "core_attention",
    "attention_scores": "attention_scores",
    "layernorm": "norms",
    "norms": "norms",
    "moe_act": "activation_function",
    "mlp_act": "activation_function",
    "activation_function": "activation_function",
}
"""Our words for modules that selective recomputation computes again."""
