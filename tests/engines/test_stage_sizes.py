"""The split of layers over stages that files write out is the one that the cost model predicts."""

import pytest

from autotune.cost.stages import layers_of_places
from autotune.engines.stage_sizes import stage_sizes
from autotune.spec.layout import Layout, LayoutTable


@pytest.mark.parametrize(
    ("layout", "layers", "sizes"),
    [
        (Layout(pp=4), 8, (2, 2, 2, 2)),
        # ceil(30/4) = 8, two missing: one from the last rank, one from the first
        (Layout(pp=4), 30, (7, 8, 8, 7)),
        # ceil(14/8) = 2, two missing: the last rank gives at the head, the first at the embedding
        (Layout(pp=4, vpp=2, schedule="interleaved"), 14, (1, 2, 2, 2, 2, 2, 2, 1)),
        # in a V the first rank has both ends: rank 1 gives in its second stage, then rank 0 at the head
        (Layout(pp=2, vpp=2, schedule="zb-v"), 6, (2, 2, 1, 1)),
        (Layout(), 5, (5,)),
    ],
)
def test_missing_layers_are_taken_from_the_ends_first(layout, layers, sizes):
    assert stage_sizes(layout, layers) == sizes


@pytest.mark.parametrize("layers", [32, 61, 80, 94, 126])
@pytest.mark.parametrize(("pp", "vpp"), [(2, 1), (3, 1), (4, 3), (8, 2), (8, 4), (16, 1)])
def test_ranks_hold_what_the_cost_model_counts(layers, pp, vpp):
    layout = Layout(pp=pp, vpp=vpp, schedule="interleaved" if vpp > 1 else "1f1b")

    sizes = stage_sizes(layout, layers)
    ranks = [sum(sizes[rank::pp]) for rank in range(pp)]

    first, second, last = layers_of_places(LayoutTable.of([layout]), layers)[:, 0]
    # "second" stands for the fullest of the ranks between
    assert (ranks[0], max(ranks[1:-1] or ranks[1:]), ranks[-1]) == (first, second, last)
    assert sum(sizes) == layers
