"""The models that torchtitan ships, by shape: a recipe takes one of them, or builds a Llama or Qwen3 of another size.

Read in torchtitan/models/{llama3,qwen3}/__init__.py and config_registry.py, main of 2026-08-21 (b5bcd76).
"""

from dataclasses import dataclass
from typing import Final, Literal

from autotune.spec.model import ModelSpec

Family = Literal["llama3", "qwen3"]
Shape = tuple[int, int, int, int, int, int, bool, int, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Shipped:
    """A size that torchtitan names. baseline: the function whose other settings the recipe takes over."""

    family: Family
    flavor: str
    baseline: str


# hidden, layers, heads, kv heads, MLP width (of an expert in a mixture), vocabulary, tied, experts, experts per token
SHIPPED: Final[dict[Shape, Shipped]] = {
    (2048, 16, 32, 8, 8192, 128256, True, 0, 0): Shipped(family="llama3", flavor="1B", baseline="llama3_8b"),
    (3072, 28, 24, 8, 8192, 128256, True, 0, 0): Shipped(family="llama3", flavor="3B", baseline="llama3_8b"),
    (4096, 32, 32, 8, 14336, 128256, False, 0, 0): Shipped(family="llama3", flavor="8B", baseline="llama3_8b"),
    (8192, 80, 64, 8, 28672, 128256, False, 0, 0): Shipped(family="llama3", flavor="70B", baseline="llama3_70b"),
    (16384, 126, 128, 8, 53248, 128256, False, 0, 0): Shipped(family="llama3", flavor="405B", baseline="llama3_70b"),
    (1024, 28, 16, 8, 3072, 151936, True, 0, 0): Shipped(family="qwen3", flavor="0.6B", baseline="qwen3_0_6b"),
    (2048, 28, 16, 8, 6144, 151936, True, 0, 0): Shipped(family="qwen3", flavor="1.7B", baseline="qwen3_1_7b"),
    (2560, 36, 32, 8, 9728, 151936, True, 0, 0): Shipped(family="qwen3", flavor="4B", baseline="qwen3_1_7b"),
    (4096, 36, 32, 8, 12288, 151936, False, 0, 0): Shipped(family="qwen3", flavor="8B", baseline="qwen3_14b"),
    (5120, 40, 40, 8, 17408, 151936, False, 0, 0): Shipped(family="qwen3", flavor="14B", baseline="qwen3_14b"),
    (5120, 64, 64, 8, 25600, 151936, False, 0, 0): Shipped(family="qwen3", flavor="32B", baseline="qwen3_32b"),
    (2048, 48, 32, 4, 768, 151936, False, 128, 8): Shipped(family="qwen3", flavor="30B-A3B", baseline="qwen3_30b_a3b"),
    (4096, 94, 64, 4, 1536, 151936, False, 128, 8): Shipped(
        family="qwen3", flavor="235B-A22B", baseline="qwen3_30b_a3b"
    ),
}


QWEN3_HEAD_DIM: Final = 128
"""Of every shipped Qwen3; a shipped Llama has hidden_size / num_attention_heads."""


def shape_of(model: ModelSpec) -> Shape:
    """What tells the shipped sizes apart."""
    moe = model.moe
    return (
        model.hidden_size,
        model.num_hidden_layers,
        model.num_attention_heads,
        model.num_key_value_heads,
        moe.expert_intermediate_size if moe else model.intermediate_size,
        model.vocab_size,
        model.tied_embeddings,
        moe.num_experts if moe else 0,
        moe.experts_per_token if moe else 0,
    )


def family_of(model: ModelSpec) -> Family:
    """Qwen3 has norms of query and key, Llama has not."""
    return "qwen3" if model.qk_norm else "llama3"


def shipped(model: ModelSpec) -> Shipped | None:
    """The shipped size of that shape."""
    found = SHIPPED.get(shape_of(model))
    head_dim = QWEN3_HEAD_DIM if model.qk_norm else model.hidden_size // model.num_attention_heads
    if found is None or found.family != family_of(model) or model.head_dim != head_dim:
        return None
    return found


def can_be_built(model: ModelSpec) -> bool:
    """Whether a recipe can have this shape: a shipped size, or a dense one that the family's builder makes."""
    if shipped(model) is not None:
        return True
    whole_heads = model.head_dim * model.num_attention_heads == model.hidden_size
    return model.moe is None and (model.qk_norm or whole_heads)
