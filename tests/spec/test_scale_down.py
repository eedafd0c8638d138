import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.spec.huggingface import load_model, model_names
from autotune.spec.scale_down import scale_down
from tests.examples import llama_3_70b, problem, tiny_model
from tests.spec.counting import count_parameters


def scaled(model, **changes):
    return scale_down(problem(model=model, sequence_length=8192, global_batch_size=1024), **changes)


def test_llama_3_70b_becomes_a_small_model_of_the_same_kind():
    # 64 heads over 8 key/value heads: 8 each, kept over 4: 32; head width 256·64·128/8192/32 = 8; MLP 3.5·256 = 896
    got = scaled(llama_3_70b())

    assert got.model.name == "llama-3-70b-scaled"
    assert (got.model.hidden_size, got.model.num_hidden_layers, got.model.vocab_size) == (256, 8, 2048)
    assert (got.model.num_attention_heads, got.model.num_key_value_heads, got.model.head_dim) == (32, 4, 8)
    assert got.model.intermediate_size == 896
    assert (got.workload.sequence_length, got.workload.global_batch_size) == (128, 16)
    assert got.cluster == problem().cluster


@pytest.mark.parametrize("name", model_names())
def test_every_model_of_the_catalog_keeps_its_kind_within_the_budget(name):
    model = load_model(name)

    got = scaled(model).model

    assert count_parameters(got) <= 20_000_000
    assert got.num_hidden_layers % 4 == 0
    assert got.num_attention_heads * model.num_key_value_heads == model.num_attention_heads * got.num_key_value_heads
    for field in ("tied_embeddings", "gated_mlp", "activation", "norm", "qkv_bias", "qk_norm", "attention_sinks"):
        assert getattr(got, field) == getattr(model, field)
    assert (got.moe is None, got.mla is None) == (model.moe is None, model.mla is None)
    if got.moe is not None and model.moe is not None:
        assert got.moe.experts_per_token < got.moe.num_experts
        assert bool(got.moe.dense_layers) == bool(model.moe.dense_layers)


@given(
    layers=st.integers(1, 200),
    kv_heads=st.integers(1, 16),
    group=st.integers(1, 16),
    intermediate_size=st.integers(1, 10_000),
    budget=st.sampled_from([20_000_000, 1_000_000]),
)
def test_nothing_grows_and_twice_is_once(layers, kv_heads, group, intermediate_size, budget):
    model = tiny_model(layers=layers, heads=kv_heads * group, kv_heads=kv_heads, intermediate_size=intermediate_size)

    once = scaled(model, max_parameters=budget)

    for field in (
        "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim",
        "intermediate_size", "vocab_size", "max_position_embeddings",
    ):  # fmt: skip
        assert 1 <= getattr(once.model, field) <= getattr(model, field)
    again = scale_down(once, max_parameters=budget)
    assert again.model.name == once.model.name
    assert again.model.hidden_size == once.model.hidden_size
    assert again.model.num_hidden_layers == once.model.num_hidden_layers
    assert again.workload == once.workload


def test_a_small_budget_narrows_the_model():
    assert scaled(llama_3_70b(), max_parameters=2_000_000).model.hidden_size < 256
