"""ZB-V, V-Half and V-Min: two chunks on each rank in a V, so that the first and the last stage share a rank.

Qi et al. 2023 (2401.10241), section 6, and Qi et al. 2024 (2405.15362). In V-Half and V-Min one building block, a
micro-batch's F0, F1, B1 and B0, is repeated every six passes; how fast each of the four moves along the ranks decides
how long activations live, and so the memory.
"""

from autotune.cost.pipeline.operations import Kind, Operation, Schedule, folded
from autotune.cost.pipeline.shape import Shape
from autotune.cost.pipeline.weaving import weave

_PERIOD = 6
"""Passes of a rank for one micro-batch: F, B and W of two chunks."""


def zb_v(shape: Shape) -> Schedule:
    """Keeps p micro-batches in flight; no bubble in a rank's own span where F = B = W.

    The order of ScheduleZBVZeroBubble in torch.distributed.pipelining, written for at least 2p - 1 micro-batches;
    the passes of those that are not there are left out.
    """
    ranks = tuple(
        tuple(operation for operation in _zb_v_order(rank, shape) if operation.micro_batch < shape.micro_batches)
        for rank in range(shape.pp)
    )
    return _scheduled("zb-v", shape, ranks)


def v_half(shape: Shape) -> Schedule:
    """F0 and B1 take 2 passes a rank, F1 and B0 take 1: (p + 2)/2 micro-batches in flight.

    `stable_pattern_v_half` of sail-sg/zero-bubble-pipeline-parallelism, zbv_greedy.py.
    """
    p = shape.pp
    turn = 3 if p % 2 == 0 else 0
    blocks = [(2 * i, 3 * p - i - 2, 3 * p + turn + 2 * i - 1, 6 * p + turn - i - 2) for i in range(p)]
    return _scheduled("v-half", shape, _repeated(blocks, shape, chunks_in_flight=p + 2))


def v_min(shape: Shape) -> Schedule:
    """Each of the four takes 1 pass a rank: (p + 4)/3 micro-batches in flight, the least of the V schedules.

    `stable_pattern_v_min` of sail-sg/zero-bubble-pipeline-parallelism, zbv_greedy.py.
    """
    p = shape.pp
    turn = 2 if p % 3 == 0 else 0
    blocks = [(i, 2 * p - i - 1, 2 * p + turn + i, 4 * p + turn - i - 1) for i in range(p)]
    return _scheduled("v-min", shape, _repeated(blocks, shape, chunks_in_flight=2 * (p + 4) // 3))


def _scheduled(name: str, shape: Shape, ranks: tuple[tuple[Operation, ...], ...]) -> Schedule:
    return Schedule(name=name, ranks=ranks, placement=(folded(shape.pp, 2),), micro_batches=shape.micro_batches)


class _Pen:
    """Writes the passes of one chunk of a rank, each kind counting its micro-batches."""

    def __init__(self, order: list[Operation], stage: int) -> None:
        self._order = order
        self._stage = stage
        self.done = dict.fromkeys(Kind, 0)

    def write(self, *kinds: Kind) -> None:
        """One pass of each kind, for its next micro-batch."""
        for kind in kinds:
            self._order.append(Operation(kind, self._stage, self.done[kind]))
            self.done[kind] += 1


def _zb_v_order(rank: int, shape: Shape) -> list[Operation]:
    """Warm-up, steady state and cool-down of one rank."""
    f, b, w = Kind.FORWARD, Kind.INPUT_GRADIENT, Kind.WEIGHT_GRADIENT
    order: list[Operation] = []
    shallow, deep = _Pen(order, rank), _Pen(order, 2 * shape.pp - 1 - rank)
    micro_batches = max(2 * shape.pp - 1, shape.micro_batches)
    beyond = shape.pp - rank
    for _ in range(2 * beyond - 1):
        shallow.write(f)
    for _ in range(rank):
        deep.write(f)
        shallow.write(f)
    for _ in range(beyond):
        deep.write(f, b, w)
    while deep.done[f] < micro_batches:
        if shallow.done[f] < micro_batches:
            shallow.write(f)
        shallow.write(b, w)
        deep.write(f, b, w)
    for _ in range(rank):
        shallow.write(b)
        deep.write(b)
    for _ in range(beyond):
        shallow.write(b, w)
    for pen in (deep, shallow):
        while pen.done[w] < micro_batches:
            pen.write(w)
    return order


def _repeated(
    blocks: list[tuple[int, int, int, int]], shape: Shape, *, chunks_in_flight: int
) -> tuple[tuple[Operation, ...], ...]:
    """Blocks repeated for every micro-batch, with the weight gradients woven in.

    blocks[rank]: when F0, F1, B1, B0 of micro-batch 0 start.
    """
    last = 2 * shape.pp - 1
    order = []
    for rank, starts in enumerate(blocks):
        passes = (
            (Kind.FORWARD, rank),
            (Kind.FORWARD, last - rank),
            (Kind.INPUT_GRADIENT, last - rank),
            (Kind.INPUT_GRADIENT, rank),
        )
        timed = sorted(
            (start + _PERIOD * micro_batch, Operation(kind, stage, micro_batch))
            for micro_batch in range(shape.micro_batches)
            for start, (kind, stage) in zip(starts, passes, strict=True)
        )
        order.append([operation for _, operation in timed])
    return weave(order, stages=last + 1, micro_batches=shape.micro_batches, chunks_in_flight=chunks_in_flight)
