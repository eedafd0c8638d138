"""Standing: how things stand in a search: the calibrated estimate of every layout, and which of them are still open."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from autotune.calibration.fit import calibrate, fit_note
from autotune.calibration.observation import Observation, observe
from autotune.calibration.residuals import Interval, memory_residual_interval, residual_interval
from autotune.cost.estimates import Estimates
from autotune.cost.feasibility import DOES_NOT_FIT, VerdictColumn
from autotune.cost.profile import Factors
from autotune.search.dominance import as_large
from autotune.spec.layout import BoolColumn, Layout, LayoutTable
from autotune.spec.outcome import TrialResult


@dataclass(frozen=True, kw_only=True)
class Candidates:
    """What is searched, and the cost model that scores it.

    table: the valid layouts, the baseline among them; score: the estimates of a table's rows with some factors;
    verdicts: the codes of `cost.feasibility` for estimates; limit_bytes: what one process may hold; time_counts: the
    step times of trials say something about the target (those of more processes than cores do not).
    """

    table: LayoutTable
    score: Callable[[LayoutTable, Factors], Estimates]
    verdicts: Callable[[Estimates], VerdictColumn]
    limit_bytes: float
    time_counts: bool = True

    def row_of(self, layout: Layout) -> int | None:
        """The row of a layout; None if it is not in the table."""
        return self.table.row_of(layout)


class Standing:
    """The state of one search, changed by each run; a million rows are too many to copy each time."""

    def __init__(self, candidates: Candidates) -> None:
        self.candidates = candidates
        self.factors = Factors()
        self.interval: Interval | None = None
        self.memory_interval: Interval | None = None
        self.calibration = fit_note([])
        self.ran: BoolColumn = np.zeros(len(candidates.table), dtype=np.bool_)
        self.ruled_out: BoolColumn = np.zeros(len(candidates.table), dtype=np.bool_)
        self._runs: list[tuple[int, TrialResult]] = []
        self._score()

    def add(self, row: int, result: TrialResult, *, out_of_memory: bool) -> None:
        """Close a row that ran; after an out-of-memory also all that need at least as much."""
        self.ran[row] = True
        self._runs.append((row, result))
        if out_of_memory:
            self.ruled_out |= as_large(self.candidates.table, self.estimates, row)

    def recalibrate(self) -> None:
        """Fit the factors to all runs so far, from the start, so that a resumed search fits the same; score again."""
        if not self._observations(self.factors):
            return
        self.factors = calibrate(self._observations)
        observations = self._observations(self.factors)
        self.interval = residual_interval(observations, self.factors)
        self.calibration = fit_note(observations)
        self.memory_interval = memory_residual_interval(observations, self.factors)
        self._score()

    def best_open_row(self) -> int | None:
        """The fastest row, by expectation, that may fit and has not run; the first of equal ones. None if none is."""
        open_rows = np.flatnonzero(self.may_fit & ~self.ran & ~self.ruled_out)
        return int(open_rows[np.argmin(self.step_s[open_rows])]) if len(open_rows) else None

    def low_s(self, row: int) -> float | None:
        """The least step time expected of a row; None while there are too few runs to say."""
        return None if self.interval is None else float(self.step_s[row] * self.interval[0])

    def _observations(self, factors: Factors) -> Sequence[Observation]:
        """All runs so far beside what these factors predict of them."""
        chosen = self.candidates
        if not self._runs:
            return []
        estimates = chosen.score(chosen.table.take(np.array([row for row, _ in self._runs])), factors)
        seen = [
            observe(
                estimates, index, result,
                predicted_with=factors, limit_bytes=chosen.limit_bytes, time_counts=chosen.time_counts,
            )
            for index, (_, result) in enumerate(self._runs)
        ]  # fmt: skip
        return [observation for observation in seen if observation is not None]

    def _score(self) -> None:
        self.estimates = self.candidates.score(self.candidates.table, self.factors)
        self.step_s = self.estimates.time.step_s
        self.may_fit = np.asarray(self.candidates.verdicts(self.estimates) != DOES_NOT_FIT)
