"""Chimera and BitPipe: two copies of the model run in opposite directions, each with half of the micro-batches.

The papers give the order for as many micro-batches as ranks and repeat it. Here the order comes from list scheduling,
which reaches the papers' bubble there and needs no repetition beyond.
"""

from autotune.cost.pipeline.list_scheduling import list_scheduled
from autotune.cost.pipeline.operations import Schedule, folded, looped, mirrored
from autotune.cost.pipeline.shape import Shape


def chimera(shape: Shape) -> Schedule:
    """One stage of each copy on a rank, from opposite ends. Li and Hoefler 2021 (2107.06925)."""
    return _both_ways("chimera", shape, looped(shape.pp, 1))


def bitpipe(shape: Shape) -> Schedule:
    """Two chunks of each copy on a rank, in a V and its mirror image. Wu et al. 2024 (2410.19367)."""
    return _both_ways("bitpipe", shape, folded(shape.pp, 2))


def _both_ways(name: str, shape: Shape, forth: tuple[int, ...]) -> Schedule:
    placement = (forth, mirrored(forth))
    ranks = list_scheduled(
        placement,
        micro_batches_per_replica=shape.micro_batches // 2,
        chunks_in_flight=shape.pp * shape.chunks,
    )
    return Schedule(name=name, ranks=ranks, placement=placement, micro_batches=shape.micro_batches)
