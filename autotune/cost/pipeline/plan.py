"""A schedule made ready to be replayed many times: its steps in an order in which what each needs has gone before."""

from collections import defaultdict, deque
from dataclasses import dataclass
from typing import NamedTuple

from autotune.cost.pipeline.dependencies import Numbering
from autotune.cost.pipeline.operations import Operation, Schedule
from autotune.errors import AutotuneError


class Step(NamedTuple):
    """One operation of a rank, or a fused pair. remote: the steps of other ranks that must have ended, by position."""

    rank: int
    operations: tuple[Operation, ...]
    remote: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """The steps of a schedule. What a step needs from its own rank stands before it there anyway."""

    schedule: Schedule
    steps: tuple[Step, ...]


def planned(schedule: Schedule) -> Plan:
    """The plan of a schedule. A schedule whose ranks wait for each other in a circle is a bug and raises."""
    planner = _Planner(schedule)
    turns = deque(range(schedule.pp))
    while turns:
        turns.extend(planner.advance(turns.popleft()))
    planner.refuse_deadlock()
    return Plan(schedule=schedule, steps=tuple(planner.steps))


class _Planner:
    """How far each rank is, and which ranks wait for which operation."""

    def __init__(self, schedule: Schedule) -> None:
        self.steps: list[Step] = []
        self._schedule = schedule
        self._numbering = Numbering(
            stages=schedule.stages,
            micro_batches_per_replica=schedule.micro_batches_per_replica,
            replicas=schedule.replicas,
            parts=schedule.parts,
        )
        self._position = [-1] * self._numbering.count
        self._next = [0] * schedule.pp
        self._waiting: defaultdict[int, list[int]] = defaultdict(list)

    def advance(self, rank: int) -> list[int]:
        """Plan a rank's steps until one needs what is not planned yet; the ranks that may go on by that."""
        operations = self._schedule.ranks[rank]
        awakened: list[int] = []
        while self._next[rank] < len(operations):
            first = self._next[rank]
            group = operations[first : first + (2 if operations[first] in self._schedule.fused else 1)]
            remote = self._remote(group, rank)
            if remote is None:
                break
            for operation in group:
                number = self._numbering.of(operation)
                self._position[number] = len(self.steps)
                awakened += self._waiting.pop(number, ())
            self.steps.append(Step(rank, group, remote))
            self._next[rank] += len(group)
        return awakened

    def _remote(self, group: tuple[Operation, ...], rank: int) -> tuple[int, ...] | None:
        """The steps of other ranks that a group needs; None, and the rank waits, if one is not planned yet."""
        found = []
        for operation in group:
            placement = self._schedule.placement[operation.replica]
            for number, stage in self._numbering.needs(operation):
                position = self._position[number]
                if position < 0:
                    self._waiting[number].append(rank)
                    return None
                if placement[stage] != rank:
                    found.append(position)
        return tuple(found)

    def refuse_deadlock(self) -> None:
        """Raise if a rank is not at its end."""
        stuck = [
            f"rank {rank} at {operations[self._next[rank]]}"
            for rank, operations in enumerate(self._schedule.ranks)
            if self._next[rank] < len(operations)
        ]
        if stuck:
            raise AutotuneError(f"{self._schedule.name} deadlocks: {', '.join(stuck)}")
