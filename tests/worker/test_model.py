"""The network that the worker builds has its ModelSpec's shape, and its parts stand where the cost model has them."""

from dataclasses import replace

import pytest
import torch

from autotune.cost.parameters import total_parameters
from autotune.cost.stages import layers_of_places
from autotune.spec.layout import Layout, LayoutTable
from autotune.spec.model import ModelSpec
from autotune.worker.attention import SequenceShards, local_positions
from autotune.worker.model import StagePlan, build_stage, tie
from autotune.worker.pipeline import stage_plans, stage_sizes, stages_of_rank
from autotune.worker.weights import materialize
from tests.examples import tiny_model

WHOLE_SEQUENCE = SequenceShards(
    mesh=None, length=16, positions=torch.arange(16), cosine=torch.empty(0), sine=torch.empty(0)
)

MODELS = {
    "llama": tiny_model(),
    "tied": replace(tiny_model(), tied_embeddings=True),
    "gpt-2": replace(
        tiny_model(kv_heads=4), norm="layernorm", norm_bias=True, gated_mlp=False, activation="gelu", qkv_bias=True,
        attention_output_bias=True, mlp_bias=True, learned_positions=64, tied_embeddings=True,
    ),
    "qwen-3": replace(tiny_model(), qk_norm=True, qkv_bias=True),
    "gemma-2": replace(tiny_model(), norms_per_layer=4, tied_embeddings=True),
    "one norm": replace(tiny_model(), norms_per_layer=1, norm="layernorm", head_bias=True),
    "bloom": replace(tiny_model(), embedding_norm=True, norm="layernorm", norm_bias=True, final_norm=False),
}  # fmt: skip


def parameters_of(model: ModelSpec) -> int:
    plan = StagePlan(index=0, count=1, layers=range(model.num_hidden_layers))
    stage = build_stage(model, plan, WHOLE_SEQUENCE, recompute="none", unfused=False)
    if model.tied_embeddings:
        tie(stage)
    return sum(parameter.numel() for parameter in stage.parameters())


@pytest.mark.parametrize("name", MODELS)
def test_the_network_has_exactly_the_parameters_that_the_cost_model_counts(name):
    assert parameters_of(MODELS[name]) == total_parameters(MODELS[name])


def test_a_small_network_is_counted_by_hand():
    # hidden 32, 4 heads and 2 key/value heads of 8, MLP 64, vocabulary 128, one layer.
    # attention: 32·32 + 2·32·16 + 32·32 = 3,072; MLP: 3·32·64 = 6,144; norms: 2·32 = 64
    # ends: 2·128·32 = 8,192 and a norm of 32
    assert parameters_of(tiny_model(layers=1)) == 3_072 + 6_144 + 64 + 8_192 + 32


def test_first_values_depend_on_name_and_seed_alone():
    first, again, other_name, other_seed = (torch.nn.Linear(8, 4, device="meta") for _ in range(4))
    materialize(first, prefix="layers.0.mlp.up", device=torch.device("cpu"), seed=1)
    materialize(again, prefix="layers.0.mlp.up", device=torch.device("cpu"), seed=1)
    materialize(other_name, prefix="layers.1.mlp.up", device=torch.device("cpu"), seed=1)
    materialize(other_seed, prefix="layers.0.mlp.up", device=torch.device("cpu"), seed=2)

    assert torch.equal(first.weight, again.weight)
    assert not torch.equal(first.weight, other_name.weight)
    assert not torch.equal(first.weight, other_seed.weight)


def test_a_context_rank_has_one_piece_from_the_front_and_one_from_the_back():
    # 8 tokens, cp 2: pieces 01 23 45 67; rank 0 has the first and the last
    assert local_positions(8, degree=2, rank=0).tolist() == [0, 1, 6, 7]
    assert local_positions(8, degree=2, rank=1).tolist() == [2, 3, 4, 5]
    assert local_positions(4, degree=1, rank=0).tolist() == [0, 1, 2, 3]


def test_stages_go_round_the_ranks_or_down_and_up_a_v():
    looped = Layout(pp=4, vpp=2, schedule="interleaved")
    v_shaped = Layout(pp=4, vpp=2, schedule="zb-v")

    assert [stages_of_rank(looped, rank) for rank in range(4)] == [(0, 4), (1, 5), (2, 6), (3, 7)]
    assert [stages_of_rank(v_shaped, rank) for rank in range(4)] == [(0, 7), (1, 6), (2, 5), (3, 4)]


def test_layers_that_do_not_divide_are_missing_first_where_the_head_is_and_then_where_the_embedding_is():
    # 6 layers on 4 stages: 2 each would be 8; the last and the first have one less
    assert stage_sizes(Layout(pp=4), 6) == (1, 2, 2, 1)
    # 5 layers: one more is missing, from the second
    assert stage_sizes(Layout(pp=4), 5) == (1, 1, 2, 1)
    # 7 on 2 ranks of 2: the last stage has the head
    assert stage_sizes(Layout(pp=2, vpp=2, schedule="interleaved"), 7) == (2, 2, 2, 1)


@pytest.mark.parametrize("schedule", ["interleaved", "zb-v"])
@pytest.mark.parametrize("layers", range(8, 20))
def test_ranks_hold_as_many_layers_as_the_cost_model_counts(schedule, layers):
    layout = Layout(pp=4, vpp=2, schedule=schedule)

    held = [sum(len(plan.layers) for plan in stage_plans(layout, layers, rank)) for rank in range(4)]

    first, second, last = layers_of_places(LayoutTable.of([layout]), layers)[:, 0].tolist()
    assert (held[0], held[-1], max(held[1:3])) == (first, last, second)
    assert sum(held) == layers
    assert min(stage_sizes(layout, layers)) >= 1


def test_every_layer_is_in_one_stage():
    layout = Layout(pp=3, vpp=2, schedule="breadth-first")

    plans = [plan for rank in range(3) for plan in stage_plans(layout, 11, rank)]

    assert sorted(layer for plan in plans for layer in plan.layers) == list(range(11))
    assert [plan.index for plan in plans if plan.has_embedding] == [0]
    assert [plan.index for plan in plans if plan.has_head] == [5]
