"""How many layers each pipeline stage gets: the split that the cost model predicts, written out stage by stage."""

from autotune.spec.layout import Layout
from autotune.spec.schedules import SCHEDULES


def stage_sizes(layout: Layout, layers: int) -> tuple[int, ...]:
    """Layers of each stage, in the order in which a micro-batch passes them.

    Where pp·vpp does not divide the layers, every stage has ceil(layers / (pp·vpp)) and the missing ones are taken one
    by one from the ranks: from the last, then the first, then the others, and so around again. In a rank a stage with
    the head or the embedding gives first, then its last ones.
    """
    count = layout.pp * layout.vpp
    most = -(-layers // count)
    sizes = [most] * count
    ranks = list(dict.fromkeys((layout.pp - 1, 0, *range(1, layout.pp - 1))))
    for turn in range(count * most - layers):
        own = [stage for stage in _stages_of_rank(layout, ranks[turn % layout.pp]) if sizes[stage] == most]
        sizes[next((end for end in (count - 1, 0) if end in own), own[-1])] -= 1
    return tuple(sizes)


def _stages_of_rank(layout: Layout, rank: int) -> tuple[int, ...]:
    if SCHEDULES[layout.schedule].v_shaped and layout.pp > 1:
        return rank, 2 * layout.pp - 1 - rank
    return tuple(range(rank, layout.pp * layout.vpp, layout.pp))
