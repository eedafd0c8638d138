import numpy as np
import pytest

from autotune.cost.parameters import (
    LayerKind,
    active_parameters,
    layer_parameters,
    padded_vocabulary,
    rank_layer_parameters,
    total_parameters,
)
from autotune.spec.layout import Layout, LayoutTable
from autotune.spec.model import ModelSpec
from tests.cost.architectures import DEEPSEEK_V3, MIXTRAL_8X7B, PUBLISHED_PARAMETERS, QWEN3_235B
from tests.examples import qwen3_30b_a3b, tiny_model


@pytest.mark.parametrize(("model", "published"), PUBLISHED_PARAMETERS, ids=lambda x: getattr(x, "name", ""))
def test_a_models_parameters_are_counted_to_the_last_one(model: ModelSpec, published: int) -> None:
    assert total_parameters(model) == published


@pytest.mark.parametrize(
    ("model", "billions"),
    [(qwen3_30b_a3b(), 3.3), (QWEN3_235B, 22), (MIXTRAL_8X7B, 12.9), (DEEPSEEK_V3, 37)],
    ids=lambda x: getattr(x, "name", ""),
)
def test_active_parameters_are_those_that_model_cards_name(model: ModelSpec, billions: float) -> None:
    # Model cards: 3.3 B, 22 B, 12.9 B, 37 B activated.
    assert active_parameters(model) / 1e9 == pytest.approx(billions, rel=0.025)


def test_the_layer_of_a_tiny_model_is_the_sum_of_its_matrices() -> None:
    # hidden 32, 4 heads of 8, 2 kv heads, ffn 64.  q and o: 2 * 32*32 = 2048; k and v: 2 * 32*16 = 1024;
    # gate, up, down: 3 * 32*64 = 6144; two norms: 64.  2048 + 6144 = 8192 are divided by tp.
    layer = layer_parameters(tiny_model(), LayerKind.DENSE)

    assert (layer.sharded, layer.key_value, layer.replicated, layer.routed) == (8192, 1024, 64, 0)


def test_key_and_value_heads_are_divided_only_as_far_as_there_are_heads() -> None:
    # tp 4 over 2 kv heads: 8192/4 + 1024/2 + 64 = 2048 + 512 + 64
    own, routed = rank_layer_parameters(LayoutTable.of([Layout(tp=4)]), tiny_model(), LayerKind.DENSE)

    assert own.tolist() == [2624.0]
    assert routed.tolist() == [0.0]


def test_expert_weights_are_those_of_a_published_failing_allocation() -> None:
    # Qwen3-235B on EP8 and PP2: 3 * 4096 * 1536 * 128 experts / 8 = 301,989,888 a layer, 47 layers a stage, 2 bytes:
    # 26.4375 GiB, the size of the allocation that modelscope/ms-swift#9403 reports.
    _, routed = rank_layer_parameters(LayoutTable.of([Layout(ep=8, pp=2)]), QWEN3_235B, LayerKind.MIXTURE)

    assert routed[0] == 301_989_888
    assert routed[0] * 47 * 2 / 2**30 == 26.4375


def test_multi_token_prediction_is_counted_only_when_asked_for() -> None:
    # One mixture layer of DeepSeek-V3 and, around it, 2 * 7168^2 + 3 * 7168 parameters.
    extra = total_parameters(DEEPSEEK_V3, with_mtp=True) - total_parameters(DEEPSEEK_V3)

    assert extra == layer_parameters(DEEPSEEK_V3, LayerKind.MIXTURE).total + 2 * 7168**2 + 3 * 7168


def test_the_vocabulary_is_padded_to_a_multiple_of_128_times_tp_and_never_twice() -> None:
    # 151,936 = 1187 * 128. tp 1: as it is; tp 2: 594 * 256 = 152,064; tp 8: 149 * 1024 = 152,576.
    padded = padded_vocabulary(qwen3_30b_a3b(), np.array([1, 2, 8]), 128)

    assert padded.tolist() == [151_936, 152_064, 152_576]
