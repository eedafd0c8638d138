"""Hanayo: each wave runs the ranks forth and back, two chunks on every rank. Liu et al. 2023 (2308.15762)."""

from autotune.cost.pipeline.list_scheduling import list_scheduled
from autotune.cost.pipeline.operations import Schedule, folded
from autotune.cost.pipeline.shape import Shape


def hanayo(shape: Shape) -> Schedule:
    """Deep passes before shallow ones, p micro-batches in flight: list scheduling finds the paper's order."""
    placement = folded(shape.pp, shape.chunks)
    ranks = list_scheduled(
        (placement,),
        micro_batches_per_replica=shape.micro_batches,
        chunks_in_flight=shape.pp * shape.chunks,
    )
    return Schedule(name="hanayo", ranks=ranks, placement=(placement,), micro_batches=shape.micro_batches)
