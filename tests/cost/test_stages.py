import numpy as np
import pytest

from autotune.cost.stages import Place, layers_of_places, stages
from autotune.spec.layout import Layout, LayoutTable
from tests.cost.architectures import DEEPSEEK_V3
from tests.examples import tiny_model


@pytest.mark.parametrize(
    ("layers", "pp", "vpp", "expected"),
    [
        (32, 1, 1, [32, 32, 32]),
        (80, 8, 5, [10, 10, 10]),
        # 126 over 32 chunks of 4: two are missing, one from the last rank and one from the first
        (126, 8, 4, [15, 16, 15]),
        # 61 over 4: 16 each would be 64, three are missing: last, first and one between
        (61, 4, 1, [15, 16, 15]),
        # 30 over 4: 8 each would be 32: 7, 8, 8, 7
        (30, 4, 1, [7, 8, 7]),
        # 7 over 2: 4 and 3, the second rank is the last
        (7, 2, 1, [4, 3, 3]),
        # 5 over 4 chunks on 2 ranks: 2 a chunk would be 8, three missing: 3 and 2
        (5, 2, 2, [3, 2, 2]),
    ],
)
def test_layers_that_do_not_divide_are_taken_from_the_ends_first(
    layers: int, pp: int, vpp: int, expected: list[int]
) -> None:
    table = LayoutTable.of([Layout(pp=pp, vpp=vpp)])

    assert layers_of_places(table, layers)[:, 0].tolist() == expected


def test_embedding_and_head_stand_on_the_end_ranks() -> None:
    held = stages(LayoutTable.of([Layout(pp=4)]), tiny_model())

    assert held.embedding[:, 0].tolist() == [1, 0, 0]
    assert held.head[:, 0].tolist() == [0, 0, 1]
    assert held.rank[:, 0].tolist() == [0, 1, 3]


def test_a_v_shaped_schedule_brings_the_head_back_to_the_first_rank() -> None:
    held = stages(LayoutTable.of([Layout(pp=2, vpp=2, schedule="zb-v", dp_shard=1)]), tiny_model())

    assert held.embedding[:, 0].tolist() == [1, 0, 0]
    assert held.head[:, 0].tolist() == [1, 0, 0]


def test_two_copies_of_the_weights_put_both_ends_on_both_end_ranks() -> None:
    held = stages(LayoutTable.of([Layout(pp=4, schedule="dualpipe")]), tiny_model())

    assert held.embedding[:, 0].tolist() == [1, 0, 1]
    assert held.head[:, 0].tolist() == [1, 0, 1]
    assert np.all(held.copies == 2)


def test_leading_dense_layers_stand_on_the_first_rank_and_prediction_layers_with_the_head() -> None:
    # DeepSeek-V3: 61 layers, 3 leading dense ones, one multi-token-prediction layer. pp 1: 3 dense and 58 + 1 mixtures.
    # pp 4: 15, 15 or 16, 16, 15: the first rank has 15 of which 3 are dense; the last 15 mixtures and the extra one.
    dense, mixture = stages(LayoutTable.of([Layout(), Layout(pp=4)]), DEEPSEEK_V3).layers

    assert (dense[Place.FIRST, 0], mixture[Place.FIRST, 0]) == (3, 59)
    assert (dense[Place.FIRST, 1], mixture[Place.FIRST, 1]) == (3, 12)
    assert (dense[Place.LAST, 1], mixture[Place.LAST, 1]) == (0, 16)
