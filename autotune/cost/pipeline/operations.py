"""A pipeline schedule as an explicit table of operations: which rank runs what, in which order."""

import itertools
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class Kind(StrEnum):
    """F; the whole backward pass BW; or its two halves apart, B (input gradient) and W (weight gradient)."""

    FORWARD = "F"
    BACKWARD = "BW"
    INPUT_GRADIENT = "B"
    WEIGHT_GRADIENT = "W"


class Operation(NamedTuple):
    """One pass of one micro-batch, or of one slice of its sequence, through one stage.

    stage counts along the model: 0 holds the embedding, the last one the loss. replica: which copy of the weights
    (bidirectional schedules hold two); each has its own micro-batches, counted from 0. part: the slice.
    """

    kind: Kind
    stage: int
    micro_batch: int
    replica: int = 0
    part: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Schedule:
    """Operations of each pipeline rank in their order.

    ranks[i]: what rank i runs; placement[replica][stage]: the rank that holds it; micro_batches: of all replicas
    together; parts: slices of a sequence; fused: a forward that runs as one with the backward behind it, so that what
    either sends leaves at the end of both; recomputed_stages: those that keep only their input and run their forward
    again as a part of the backward.
    """

    name: str
    ranks: tuple[tuple[Operation, ...], ...]
    placement: tuple[tuple[int, ...], ...]
    micro_batches: int
    parts: int = 1
    fused: frozenset[Operation] = frozenset()
    recomputed_stages: frozenset[int] = frozenset()

    @property
    def pp(self) -> int:
        """Pipeline ranks."""
        return len(self.ranks)

    @property
    def stages(self) -> int:
        """Stages of one replica: pp * vpp."""
        return len(self.placement[0])

    @property
    def vpp(self) -> int:
        """Stages of one replica on each rank."""
        return self.stages // self.pp

    @property
    def replicas(self) -> int:
        """Copies of the weights."""
        return len(self.placement)

    @property
    def micro_batches_per_replica(self) -> int:
        """Micro-batches that one copy of the weights runs."""
        return self.micro_batches // self.replicas


def looped(pp: int, chunks: int) -> tuple[int, ...]:
    """Stage s on rank s mod pp: every chunk runs the ranks in the same direction."""
    return tuple(stage % pp for stage in range(pp * chunks))


def folded(pp: int, chunks: int) -> tuple[int, ...]:
    """Chunks run the ranks forth and back, so each turn stays on its rank: a V of two chunks, a W of four."""
    return tuple(stage % pp if (stage // pp) % 2 == 0 else pp - 1 - stage % pp for stage in range(pp * chunks))


def mirrored(placement: tuple[int, ...]) -> tuple[int, ...]:
    """The same stages on the ranks counted from the other end."""
    last = max(placement)
    return tuple(last - rank for rank in placement)


def broken_promises(schedule: Schedule) -> list[str]:
    """What is wrong with a table, as sentences: every pass exactly once, on the rank that holds its stage."""
    found = []
    count: Counter[Operation] = Counter()
    for rank, operations in enumerate(schedule.ranks):
        for operation in operations:
            count[operation] += 1
            holder = _holder(schedule, operation)
            if holder != rank:
                found.append(f"{_text(operation)} is on rank {rank}, its stage is on rank {holder}")
    for place in itertools.product(
        range(schedule.stages),
        range(schedule.micro_batches_per_replica),
        range(schedule.replicas),
        range(schedule.parts),
    ):
        times = [count.pop(Operation(kind, *place), 0) for kind in Kind]
        if times not in ([1, 1, 0, 0], [1, 0, 1, 1]):
            where = _text(Operation(Kind.FORWARD, *place)).removeprefix("F of ")
            found.append(f"{where} has F, BW, B, W {times} times; F is due once, and BW or both B and W")
    found += [f"{_text(operation)} is not of this schedule" for operation in count]
    return found


def _holder(schedule: Schedule, operation: Operation) -> int | None:
    if operation.replica >= schedule.replicas or operation.stage >= schedule.stages:
        return None
    return schedule.placement[operation.replica][operation.stage]


def _text(operation: Operation) -> str:
    kind, stage, micro_batch, replica, part = operation
    return f"{kind} of stage {stage}, micro-batch {micro_batch}, replica {replica}, slice {part}"
