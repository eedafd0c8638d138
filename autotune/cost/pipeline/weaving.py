"""Weaves weight gradients into a fixed order of forwards and input gradients: one runs where its rank would wait, or
where memory is full.

The order is found with all passes equally long, slot by slot, as the authors of the V schedules do
(zbv_greedy.py of sail-sg/zero-bubble-pipeline-parallelism); what it is worth when they are not, the replay tells.
"""

from collections import deque
from collections.abc import Sequence

from autotune.cost.pipeline.dependencies import Numbering
from autotune.cost.pipeline.operations import Kind, Operation
from autotune.errors import AutotuneError


def weave(
    order: Sequence[Sequence[Operation]], *, stages: int, micro_batches: int, chunks_in_flight: int
) -> tuple[tuple[Operation, ...], ...]:
    """The order of each rank with its weight gradients.

    order[rank]: forwards and input gradients; chunks_in_flight: a forward beyond that many waits for a weight
    gradient, unless the rank has none left to run: then it goes on, for waiting would not help.
    """
    numbering = Numbering(stages=stages, micro_batches_per_replica=micro_batches)
    ended = bytearray(numbering.count)
    ranks = [_Rank(fixed, chunks_in_flight) for fixed in order]
    left = sum(len(fixed) for fixed in order) + stages * micro_batches
    while left:
        started = [operation for rank in ranks if (operation := rank.start(numbering, ended)) is not None]
        if not started:
            raise AutotuneError("weaving weight gradients into an order that deadlocks")
        for operation in started:
            ended[numbering.of(operation)] = True
        left -= len(started)
    return tuple(tuple(rank.woven) for rank in ranks)


class _Rank:
    """What a rank has done, and the weight gradients that it put off."""

    def __init__(self, fixed: Sequence[Operation], chunks_in_flight: int) -> None:
        self.woven: list[Operation] = []
        self._fixed = fixed
        self._next = 0
        self._late: deque[Operation] = deque()
        self._room = chunks_in_flight

    def start(self, numbering: Numbering, ended: bytearray) -> Operation | None:
        """What runs in this slot: the next of the fixed order if it can, else a weight gradient, else nothing."""
        operation = self._next_fixed(numbering, ended)
        if operation is None:
            if not self._late:
                return None
            operation = self._late.popleft()
            self._room += 1
        self.woven.append(operation)
        return operation

    def _next_fixed(self, numbering: Numbering, ended: bytearray) -> Operation | None:
        if self._next == len(self._fixed):
            return None
        operation = self._fixed[self._next]
        if not all(ended[number] for number, _ in numbering.needs(operation)):
            return None
        if operation.kind is Kind.FORWARD:
            if self._room < 1 and self._late:
                return None
            self._room -= 1
        else:
            self._late.append(operation._replace(kind=Kind.WEIGHT_GRADIENT))
        self._next += 1
        return operation
