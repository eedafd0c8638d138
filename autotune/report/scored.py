"""ScoredTable: a table of layouts with what the cost model says of each row, and the question it was scored for."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from autotune.cost.estimates import Estimates
from autotune.cost.feasibility import DOES_NOT_FIT, VerdictColumn, upper_bytes
from autotune.cost.profile import Factors, MemoryProfile
from autotune.spec.layout import BoolColumn, FloatColumn, LayoutTable
from autotune.spec.workload import Problem


@dataclass(frozen=True, kw_only=True)
class ScoredTable:
    """Rows of `table`, `estimates` and `verdicts` (codes into `feasibility.VERDICTS`) belong together.

    factors: those in the estimates. interval: where a step time is expected, as ratios to its prediction, None where
    nothing says. limit_bytes: what one process may use.
    """

    table: LayoutTable
    estimates: Estimates
    verdicts: VerdictColumn
    problem: Problem
    profile: MemoryProfile
    limit_bytes: float
    factors: Factors = field(default_factory=Factors)
    interval: tuple[float, float] | None = None

    def __len__(self) -> int:
        return len(self.table)

    @cached_property
    def step_s(self) -> FloatColumn:
        """Predicted step time."""
        return self.estimates.time.step_s

    @cached_property
    def peak_bytes(self) -> FloatColumn:
        """Predicted peak of the fullest stage."""
        return self.estimates.memory.peak_bytes

    @cached_property
    def upper_bytes(self) -> FloatColumn:
        """Upper bound of the peak."""
        return upper_bytes(self.estimates, self.profile)

    @cached_property
    def feasible(self) -> BoolColumn:
        """Rows that the model does not rule out."""
        return np.asarray(self.verdicts != DOES_NOT_FIT)
