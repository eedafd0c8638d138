"""DualPipe and DualPipeV: eight steps, in the middle of which a forward and a backward run as one fused pair."""

from collections import Counter, deque

from autotune.cost.pipeline.operations import Kind, Operation, Schedule, folded, looped, mirrored
from autotune.cost.pipeline.shape import Shape


def dualpipe(shape: Shape) -> Schedule:
    """Two copies of the model run in opposite directions, each with half of the micro-batches.

    DeepSeek-V3 (2412.19437), section 3.2.1; `step` of deepseek-ai/DualPipe, dualpipe.py. Phase 0 of a rank is the
    direction whose first stage is nearer.
    """
    last = shape.pp - 1
    middle = shape.pp // 2
    ranks = []
    fused: set[Operation] = set()
    for rank in range(shape.pp):
        near, far = Operation(Kind.FORWARD, rank, 0, 0), Operation(Kind.FORWARD, last - rank, 0, 1)
        phases = (near, far) if rank < middle else (far, near)
        writer = _Writer(phases)
        _eight_steps(writer, rank=min(rank, last - rank), ranks=middle, micro_batches=shape.micro_batches // 2)
        ranks.append(tuple(writer.order))
        fused |= writer.fused
    forth = looped(shape.pp, 1)
    return Schedule(
        name="dualpipe",
        ranks=tuple(ranks),
        placement=(forth, mirrored(forth)),
        micro_batches=shape.micro_batches,
        fused=frozenset(fused),
    )


def dualpipe_v(shape: Shape) -> Schedule:
    """DualPipe cut in half: one copy of the model in a V of two chunks on each rank.

    `step` of deepseek-ai/DualPipe, dualpipev.py. Phase 0 of a rank is its shallow chunk.
    """
    ranks = []
    fused: set[Operation] = set()
    for rank in range(shape.pp):
        shallow, deep = Operation(Kind.FORWARD, rank, 0), Operation(Kind.FORWARD, 2 * shape.pp - 1 - rank, 0)
        writer = _Writer((shallow, deep))
        _eight_steps(writer, rank=rank, ranks=shape.pp, micro_batches=shape.micro_batches)
        ranks.append(tuple(writer.order))
        fused |= writer.fused
    return Schedule(
        name="dualpipev",
        ranks=tuple(ranks),
        placement=(folded(shape.pp, 2),),
        micro_batches=shape.micro_batches,
        fused=frozenset(fused),
    )


class _Writer:
    """The order of one rank as it is written down; phases: the first forward of each."""

    def __init__(self, phases: tuple[Operation, Operation]) -> None:
        self.order: list[Operation] = []
        self.fused: set[Operation] = set()
        self._phases = phases
        self._done: Counter[tuple[Kind, int]] = Counter()
        self._late: deque[Operation] = deque()

    def forward(self, phase: int) -> None:
        """F of the next micro-batch of a phase."""
        self._write(Kind.FORWARD, phase)

    def backward(self, phase: int, *, split: bool = False) -> None:
        """BW of the next micro-batch, or B alone with W put off."""
        written = self._write(Kind.BACKWARD, phase)
        if split:
            self.order[-1] = written._replace(kind=Kind.INPUT_GRADIENT)
            self._late.append(written._replace(kind=Kind.WEIGHT_GRADIENT))

    def weight_gradient(self) -> None:
        """The oldest W that was put off."""
        self.order.append(self._late.popleft())

    def pair(self, forward_phase: int, backward_phase: int) -> None:
        """F and BW as one."""
        self.fused.add(self._write(Kind.FORWARD, forward_phase))
        self._write(Kind.BACKWARD, backward_phase)

    def _write(self, kind: Kind, phase: int) -> Operation:
        operation = self._phases[phase]._replace(kind=kind, micro_batch=self._done[kind, phase])
        self._done[kind, phase] += 1
        self.order.append(operation)
        return operation


def _eight_steps(writer: _Writer, *, rank: int, ranks: int, micro_batches: int) -> None:
    """Steps of one rank, counted from the end where phase 0 begins; ranks: until the turn; micro_batches: a phase's."""
    beyond = ranks - rank - 1
    for _ in range(2 * beyond):
        writer.forward(0)
    for _ in range(rank + 1):
        writer.forward(0)
        writer.forward(1)
    for _ in range(beyond):
        writer.backward(1, split=True)
        writer.weight_gradient()
        writer.forward(1)
    for step in range(micro_batches - 2 * ranks + rank + 1):
        if step == 0 and beyond == 0:
            # The authors leave this pair unfused at the turn, which shortens the bubble.
            writer.forward(0)
            writer.backward(1)
        else:
            writer.pair(0, 1)
        writer.pair(1, 0)
    for _ in range(beyond):
        writer.backward(1)
        writer.pair(1, 0)
    _cool_down(writer, rank=rank, beyond=beyond)


def _cool_down(writer: _Writer, *, rank: int, beyond: int) -> None:
    """Steps 6 to 8: the second half of the backwards is split, their weight gradients fill the end."""
    half = (rank + 1) // 2
    for step in range(rank + 1):
        writer.backward(1, split=step > half or (step == half and rank % 2 == 1))
        writer.backward(0, split=step >= half)
    for _ in range(beyond):
        writer.weight_gradient()
        writer.backward(0, split=True)
    for _ in range(rank + 1):
        writer.weight_gradient()
