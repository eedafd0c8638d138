"""List scheduling, slot by slot: a rank runs a backward if one is ready, else a forward if there is room for it.

Forward and backward are taken to be equally long here. With that the orders found reach the bubbles that the papers
on bidirectional and wave schedules publish also where a backward takes twice as long; scheduling with the true lengths
does not (two waves of Hanayo, four ranks and micro-batches: 4 instead of 3 passes).
"""

import heapq

from autotune.cost.pipeline.operations import Kind, Operation

_Ready = list[tuple[int, int, int, Operation]]


def list_scheduled(
    placement: tuple[tuple[int, ...], ...], *, micro_batches_per_replica: int, chunks_in_flight: int
) -> tuple[tuple[Operation, ...], ...]:
    """The order of each rank.

    Of several ready passes the deepest stage goes first, then the earliest micro-batch. A forward beyond
    chunks_in_flight waits, unless no rank has anything else to run: then the first such forward goes on.
    """
    scheduler = _Scheduler(placement, chunks_in_flight)
    for replica in range(len(placement)):
        for micro_batch in range(micro_batches_per_replica):
            scheduler.make_ready(Operation(Kind.FORWARD, 0, micro_batch, replica))
    left = 2 * len(placement) * len(placement[0]) * micro_batches_per_replica
    while left:
        left -= scheduler.run_slot()
    return tuple(tuple(order) for order in scheduler.order)


class _Scheduler:
    """What is ready on each rank, and how many chunks' activations each may still take."""

    def __init__(self, placement: tuple[tuple[int, ...], ...], chunks_in_flight: int) -> None:
        ranks = max(placement[0]) + 1
        self.order: list[list[Operation]] = [[] for _ in range(ranks)]
        self._placement = placement
        self._last_stage = len(placement[0]) - 1
        self._room = [chunks_in_flight] * ranks
        self._forwards: list[_Ready] = [[] for _ in range(ranks)]
        self._backwards: list[_Ready] = [[] for _ in range(ranks)]

    def make_ready(self, operation: Operation) -> None:
        """What an operation needs has ended."""
        kind, stage, micro_batch, replica, _ = operation
        ready = self._forwards if kind is Kind.FORWARD else self._backwards
        heapq.heappush(ready[self._placement[replica][stage]], (-stage, micro_batch, replica, operation))

    def run_slot(self) -> int:
        """Run one operation on every rank that has one; how many."""
        chosen = [operation for rank in range(len(self.order)) if (operation := self._choose(rank)) is not None]
        if not chosen:
            fullest = min((r for r, ready in enumerate(self._forwards) if ready), key=lambda r: self._forwards[r][0])
            chosen = [heapq.heappop(self._forwards[fullest])[-1]]
        for operation in chosen:
            self._run(operation)
        return len(chosen)

    def _choose(self, rank: int) -> Operation | None:
        if self._backwards[rank]:
            return heapq.heappop(self._backwards[rank])[-1]
        if self._forwards[rank] and self._room[rank] > 0:
            return heapq.heappop(self._forwards[rank])[-1]
        return None

    def _run(self, operation: Operation) -> None:
        kind, stage, _, replica, _ = operation
        rank = self._placement[replica][stage]
        self.order[rank].append(operation)
        if kind is Kind.FORWARD:
            self._room[rank] -= 1
            at_the_turn = stage == self._last_stage
            self.make_ready(
                operation._replace(kind=Kind.BACKWARD) if at_the_turn else operation._replace(stage=stage + 1)
            )
            return
        self._room[rank] += 1
        if stage:
            self.make_ready(operation._replace(stage=stage - 1))
