"""Which operations must end before another may start, on numbers instead of objects: replaying is a hot loop.

    F(s, j)      after F(s-1, j);            slice q also after slice q-1 of the same stage
    B or BW(s,j) after F(s, j), B(s+1, j);   slice q also after slice q+1 of the same stage
    W(s, j)      after B(s, j)

A backward is one operation BW or two, B and W, never all three, so B and BW share their number.
"""

from dataclasses import dataclass
from typing import Final

from autotune.cost.pipeline.operations import Kind, Operation

_PLACE: Final = {Kind.FORWARD: 0, Kind.INPUT_GRADIENT: 1, Kind.BACKWARD: 1, Kind.WEIGHT_GRADIENT: 2}


@dataclass(frozen=True, kw_only=True, slots=True)
class Numbering:
    """Numbers the operations of a schedule from 0 to `count` - 1, with gaps."""

    stages: int
    micro_batches_per_replica: int
    replicas: int = 1
    parts: int = 1

    @property
    def count(self) -> int:
        """One more than the highest number."""
        return 3 * self.stages * self.micro_batches_per_replica * self.replicas * self.parts

    def of(self, operation: Operation) -> int:
        """The number of an operation."""
        kind, stage, micro_batch, replica, part = operation
        column = (replica * self.parts + part) * self.micro_batches_per_replica + micro_batch
        return 3 * (column * self.stages + stage) + _PLACE[kind]

    def needs(self, operation: Operation) -> list[tuple[int, int]]:
        """What must have ended: (its number, its stage) of each."""
        kind, stage, _, _, part = operation
        own = self.of(operation)
        next_part = 3 * self.micro_batches_per_replica * self.stages
        if kind is Kind.WEIGHT_GRADIENT:
            return [(own - 1, stage)]
        if kind is Kind.FORWARD:
            found = [(own - 3, stage - 1)] if stage else []
            if part:
                found.append((own - next_part, stage))
            return found
        found = [(own - 1, stage)]
        if stage < self.stages - 1:
            found.append((own + 3, stage + 1))
        if part < self.parts - 1:
            found.append((own + next_part, stage))
        return found
