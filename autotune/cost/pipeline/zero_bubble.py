"""ZB-H1 and ZB-H2: 1F1B whose weight gradients are put off until the last ranks would wait.

Qi et al. 2023 (2401.10241), their handcrafted schedules. The bubbles are counted in a rank's own span:
ZB-H2 has none if no rank waits for another between two steps.
"""

from autotune.cost.pipeline.alternation import alternate_with_late_weight_gradients
from autotune.cost.pipeline.operations import Kind, Operation, Schedule, looped
from autotune.cost.pipeline.shape import Shape


def zb_h1(shape: Shape) -> Schedule:
    """The warm-up of 1F1B; rank i runs W i micro-batches late, so that every rank holds p, as rank 0 of 1F1B does."""
    return _handcrafted("zb-h1", shape, per_hop=1)


def zb_h2(shape: Shape) -> Schedule:
    """Twice the warm-up and twice as late: 2p - 1 micro-batches on every rank, no bubble where F = B = W."""
    return _handcrafted("zb-h2", shape, per_hop=2)


def _handcrafted(name: str, shape: Shape, *, per_hop: int) -> Schedule:
    micro_batches = range(shape.micro_batches)
    ranks = tuple(
        alternate_with_late_weight_gradients(
            [Operation(Kind.FORWARD, rank, micro_batch) for micro_batch in micro_batches],
            [Operation(Kind.INPUT_GRADIENT, rank, micro_batch) for micro_batch in micro_batches],
            warm_up=per_hop * (shape.pp - 1 - rank),
            late=per_hop * rank,
        )
        for rank in range(shape.pp)
    )
    return Schedule(
        name=name, ranks=ranks, placement=(looped(shape.pp, 1),), micro_batches=shape.micro_batches
    )  # fmt: skip
