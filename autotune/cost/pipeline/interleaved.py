"""Interleaved 1F1B, its zero-bubble variant and breadth-first: several chunks on each rank, placed in a loop."""

from autotune.cost.pipeline.alternation import alternate, alternate_with_late_weight_gradients
from autotune.cost.pipeline.operations import Kind, Operation, Schedule, looped
from autotune.cost.pipeline.shape import Shape


def interleaved(shape: Shape) -> Schedule:
    """Groups of p micro-batches run chunk after chunk; rank i warms up with 2(p-1-i) + (v-1)p chunk passes.

    Narayanan et al. 2021 (2104.04473), section 2.2; torch.distributed.pipelining's Interleaved1F1B.
    """
    ranks = tuple(
        alternate(
            _grouped(Kind.FORWARD, rank, shape),
            _grouped(Kind.BACKWARD, rank, shape),
            warm_up=2 * (shape.pp - 1 - rank) + (shape.chunks - 1) * shape.pp,
        )
        for rank in range(shape.pp)
    )
    return _scheduled("interleaved", shape, ranks)


def interleaved_zero_bubble(shape: Shape) -> Schedule:
    """Interleaved with a warm-up of (p-1-i) + (v-1)p and weight gradients that rank i runs i passes late.

    ScheduleInterleavedZeroBubble of torch.distributed.pipelining, which follows ZB-H1 of Qi et al. 2023 (2401.10241).
    """
    ranks = tuple(
        alternate_with_late_weight_gradients(
            _grouped(Kind.FORWARD, rank, shape),
            _grouped(Kind.INPUT_GRADIENT, rank, shape),
            warm_up=shape.pp - 1 - rank + (shape.chunks - 1) * shape.pp,
            late=rank,
        )
        for rank in range(shape.pp)
    )
    return _scheduled("interleaved-zb", shape, ranks)


def breadth_first(shape: Shape) -> Schedule:
    """All micro-batches through a chunk before the next chunk begins. Lamy-Poirier 2022 (2211.05953).

    The backwards take the micro-batches in reverse, as torch.distributed.pipelining's LoopedBFS does.
    """
    ranks = []
    for rank in range(shape.pp):
        forwards = [
            Operation(Kind.FORWARD, chunk * shape.pp + rank, micro_batch)
            for chunk in range(shape.chunks)
            for micro_batch in range(shape.micro_batches)
        ]
        backwards = [forward._replace(kind=Kind.BACKWARD) for forward in reversed(forwards)]
        ranks.append((*forwards, *backwards))
    return _scheduled("breadth-first", shape, tuple(ranks))


def _scheduled(name: str, shape: Shape, ranks: tuple[tuple[Operation, ...], ...]) -> Schedule:
    return Schedule(
        name=name, ranks=ranks, placement=(looped(shape.pp, shape.chunks),), micro_batches=shape.micro_batches
    )


def _grouped(kind: Kind, rank: int, shape: Shape) -> list[Operation]:
    """Passes of a rank in groups of p micro-batches: shallow chunks first going forward, deep ones going back."""
    forward = range(shape.chunks)
    return [
        Operation(kind, chunk * shape.pp + rank, first + micro_batch)
        for first in range(0, shape.micro_batches, shape.pp)
        for chunk in (forward if kind is Kind.FORWARD else reversed(forward))
        for micro_batch in range(shape.pp)
    ]
