"""GPipe and 1F1B, and Seq1F1B, which is 1F1B over slices of sequences: one stage on each rank."""

from autotune.cost.pipeline.alternation import alternate
from autotune.cost.pipeline.operations import Kind, Operation, Schedule, looped
from autotune.cost.pipeline.shape import Shape


def gpipe(shape: Shape) -> Schedule:
    """All forwards, then all backwards. Huang et al. 2018 (1811.06965)."""
    return _scheduled("gpipe", shape, [shape.micro_batches] * shape.pp)


def one_forward_one_backward(shape: Shape) -> Schedule:
    """Rank i warms up with p - 1 - i micro-batches. Narayanan et al. 2021 (2104.04473), section 2.2."""
    return _scheduled("1f1b", shape, [shape.pp - 1 - rank for rank in range(shape.pp)])


def sequence_sliced(shape: Shape) -> Schedule:
    """1F1B over slices: rank i warms up with p - 2 - i + k of them, backwards run a sequence's slices in reverse.

    Sun et al. 2024 (2406.03488); seq1f1b.py of sail-sg/zero-bubble-pipeline-parallelism.
    """
    return _scheduled("seq1f1b", shape, [shape.pp - 2 - rank + shape.parts for rank in range(shape.pp)])


def _scheduled(name: str, shape: Shape, warm_ups: list[int]) -> Schedule:
    return Schedule(
        name=name,
        ranks=tuple(
            alternate(
                _passes(Kind.FORWARD, rank, shape), _passes(Kind.BACKWARD, rank, shape), warm_up=warm_up
            )
            for rank, warm_up in enumerate(warm_ups)
        ),
        placement=(looped(shape.pp, 1),),
        micro_batches=shape.micro_batches,
        parts=shape.parts,
    )  # fmt: skip


def _passes(kind: Kind, rank: int, shape: Shape) -> list[Operation]:
    slices = range(shape.parts)
    return [
        Operation(kind, rank, micro_batch, part=part)
        for micro_batch in range(shape.micro_batches)
        for part in (slices if kind is Kind.FORWARD else reversed(slices))
    ]
