"""What a model has that a Llama has not, so that an engine can say which of it its launch files can describe."""

from collections.abc import Iterable

import numpy as np

from autotune.space.rules import Rule
from autotune.spec.model import ModelSpec
from autotune.spec.workload import Problem

LATENT_ATTENTION = "latent-attention"
TOKEN_PREDICTION = "token-prediction"
EXPERTS = "experts"
QK_NORM = "qk-norm"
QKV_BIAS = "qkv-bias"
EVERY_BIAS = "every-bias"
PLAIN_GELU = "plain-gelu"
LAYERNORM = "layernorm"
LEARNED_POSITIONS = "learned-positions"
TIED = "tied"
ONE_NORM = "one-norm"
FOUR_NORMS = "four-norms"
NO_FINAL_NORM = "no-final-norm"
EMBEDDING_NORM = "embedding-norm"
HEAD_BIAS = "head-bias"
OTHER_MLP = "other-mlp"
UNBIASED_LAYERNORM = "unbiased-layernorm"
MIXED_BIASES = "mixed-biases"


def traits(problem: Problem) -> dict[str, str]:
    """Names of the traits, each with the words for a sentence. A Llama has none but, in its small sizes, TIED."""
    model = problem.model
    found = {
        TIED: model.tied_embeddings and "tied embeddings",
        EXPERTS: model.moe is not None and "experts",
        LATENT_ATTENTION: model.mla is not None and "multi-head latent attention",
        TOKEN_PREDICTION: model.mtp_layers > 0 and f"mtp_layers={model.mtp_layers}",
        QK_NORM: model.qk_norm and "norms of query and key",
        "qk-norm-over-heads": model.qk_norm_over_heads and "norms of query and key over all heads",
        LEARNED_POSITIONS: model.learned_positions > 0 and f"learned_positions={model.learned_positions}",
        ONE_NORM: model.norms_per_layer == 1 and "one norm in a layer",
        FOUR_NORMS: model.norms_per_layer == 4 and "four norms in a layer",
        "norm-count": model.norms_per_layer not in (1, 2, 4) and f"norms_per_layer={model.norms_per_layer}",
        NO_FINAL_NORM: not model.final_norm and "no final norm",
        EMBEDDING_NORM: model.embedding_norm and "a norm behind the embedding",
        HEAD_BIAS: model.head_bias and "a bias in the head",
        "attention-sinks": model.attention_sinks and "attention sinks",
        "sliding-window": _window_matters(problem) and f"sliding_window={model.sliding_window}",
        **_of_the_mlp(model),
        **_of_norms(model),
        **_of_biases(model),
    }
    return {name: words for name, words in found.items() if words}


def describes_models(*, needs: str, known: Iterable[str]) -> Rule:
    """A launch rule: the files can describe a model with these traits and no others. needs: opens the sentence."""
    can = frozenset(known)

    def unknown(problem: Problem) -> list[str]:
        return [words for name, words in traits(problem).items() if name not in can]

    return Rule(
        code="model-can-be-described",
        axes=(),
        holds=lambda t, p: np.full(len(t), not unknown(p)),
        reason=lambda t, i, p: (
            f"{needs}: {p.model.name} ({p.model.num_hidden_layers} layers) has {', '.join(unknown(p))}, which the "
            f"launch files cannot say; write them by hand from the layout, or export for another engine"
        ),
    )


def _window_matters(problem: Problem) -> bool:
    model = problem.model
    return 0 < model.sliding_window < problem.workload.sequence_length and model.sliding_window_layers > 0


def _of_the_mlp(model: ModelSpec) -> dict[str, str]:
    if (model.gated_mlp, model.activation) == (True, "silu"):
        return {}
    if (model.gated_mlp, model.activation) == (False, "gelu"):
        return {PLAIN_GELU: "a plain gelu MLP"}
    return {OTHER_MLP: f"a {'gated' if model.gated_mlp else 'plain'} {model.activation} MLP"}


def _of_norms(model: ModelSpec) -> dict[str, str]:
    if model.norm == "layernorm":
        return {LAYERNORM: "layernorm"} if model.norm_bias else {UNBIASED_LAYERNORM: "layernorm without bias"}
    return {"norm-bias": "rmsnorm with bias"} if model.norm_bias else {}


def _of_biases(model: ModelSpec) -> dict[str, str]:
    biases = (model.qkv_bias, model.attention_output_bias, model.mlp_bias)
    match biases:
        case (False, False, False):
            return {}
        case (True, False, False):
            return {QKV_BIAS: "biases of query, key and value"}
        case (True, True, True):
            return {EVERY_BIAS: "biases in every linear layer"}
        case _:
            names = ("qkv_bias", "attention_output_bias", "mlp_bias")
            text = ", ".join(f"{name}={str(value).lower()}" for name, value in zip(names, biases, strict=True))
            return {MIXED_BIASES: f"the mixture of biases {text}"}
