"""The model of a measured run: a catalog model with the sizes of the row, or a model of these sizes alone."""

import re
from dataclasses import replace
from functools import cache

from autotune.spec.huggingface import load_model, model_names
from autotune.spec.measured_row import NotDescribedError, Row
from autotune.spec.model import ModelSpec, MoeSpec

_LLAMA = re.compile(r"^llama-?(?=\d)")
_AFTER_NAME = re.compile(r"\s*\(.*\)|\s+cut to .*$")
_OTHER_NAMES = {"llama-3.1-405b": "llama-3-405b", "llama-3.1-70b": "llama-3-70b", "llama-3.1-8b": "llama-3-8b"}


def model_of(row: Row) -> ModelSpec:
    """The model as run. Raises NotDescribedError where a size is not known."""
    base = catalog_model(row.stated("model"))
    if base is not None and row.whole("hidden") in (None, base.hidden_size):
        return _cut(base, row)
    return _from_sizes(row)


def catalog_model(name: str) -> ModelSpec | None:
    """The catalog model that a source's name means, "(cut to 12 layers)" and the like left away."""
    plain = _LLAMA.sub("llama-", _AFTER_NAME.sub("", name.lower()).strip())
    plain = _OTHER_NAMES.get(plain, plain)
    return _loaded(plain) if plain in model_names() else None


@cache
def _loaded(name: str) -> ModelSpec:
    return load_model(name)


def _cut(base: ModelSpec, row: Row) -> ModelSpec:
    """The catalog model with the layers, vocabulary and tying of the row."""
    tied = row.flag("tied_embeddings")
    layers = row.whole("layers") or base.num_hidden_layers
    windows = base.sliding_window_layers * layers // base.num_hidden_layers
    return replace(
        base,
        num_hidden_layers=layers,
        vocab_size=row.whole("vocab") or base.vocab_size,
        tied_embeddings=base.tied_embeddings if tied is None else tied,
        sliding_window_layers=windows,
        source=f"{base.source}; {row.stated('source')}",
    )


def _from_sizes(row: Row) -> ModelSpec:
    """A Llama where the MLP is gated, a GPT (layer norms, biases, learned positions) where it is not."""
    gated, tied = row.flag("gated_mlp"), row.flag("tied_embeddings")
    if gated is None:
        message = "whether the MLP is gated is not stated"
        raise NotDescribedError(message)
    if tied is None:
        message = "whether embedding and head are tied is not stated"
        raise NotDescribedError(message)
    if "mla attention" in row.stated("notes").lower():
        message = f"the sizes of the latent attention of {row.stated('model')} are in no column"
        raise NotDescribedError(message)
    hidden, heads = row.needed("hidden"), row.needed("heads")
    mixture = _mixture(row)
    plain = not gated
    return ModelSpec(
        name=row.stated("model"),
        architecture="GPT" if plain else "Llama",
        hidden_size=hidden,
        num_hidden_layers=row.needed("layers"),
        num_attention_heads=heads,
        num_key_value_heads=row.whole("kv_heads") or heads,
        head_dim=int(row.word("head_dim") or 0) or hidden // heads,
        intermediate_size=row.needed("ffn"),
        vocab_size=row.needed("vocab"),
        tied_embeddings=tied,
        gated_mlp=gated,
        activation="gelu" if plain else "silu",
        norm="layernorm" if plain else "rmsnorm",
        norm_bias=plain,
        qkv_bias=plain,
        attention_output_bias=plain,
        mlp_bias=plain,
        learned_positions=row.needed("seq") if plain else 0,
        moe=mixture,
        source=row.stated("source"),
    )


def _mixture(row: Row) -> MoeSpec | None:
    experts = row.whole("moe_experts")
    if not experts or experts < 2:
        return None
    width = row.whole("moe_ffn") or row.needed("ffn")
    notes = row.stated("notes").lower()
    shared = re.search(r"(\d+) shared expert", notes)
    dense = re.search(r"first (\d+) layers? dense", notes)
    return MoeSpec(
        num_experts=experts,
        experts_per_token=row.needed("moe_topk"),
        expert_intermediate_size=width,
        shared_intermediate_size=width * int(shared.group(1)) if shared else 0,
        dense_layers=int(dense.group(1)) if dense else 0,
    )
