"""History: the asked layouts of a search so far, and what follows from them together."""

from dataclasses import dataclass, field

from autotune.search.standing import Standing
from autotune.search.stopping import Best
from autotune.search.told import Tried
from autotune.spec.layout import Layout
from autotune.spec.outcome import Measured


@dataclass(slots=True)
class History:
    """Grows by one with each told trial."""

    tried: list[Tried] = field(default_factory=list)
    _ran: dict[Layout, Tried] = field(default_factory=dict)

    def add(self, one: Tried) -> None:
        """Take one more; the first run of a layout is the one that stays."""
        self.tried.append(one)
        if one.result is not None:
            self._ran.setdefault(one.layout, one)

    @property
    def runs(self) -> int:
        """Layouts that really ran, whatever came of it."""
        return len(self._ran)

    def run_of(self, layout: Layout) -> Tried | None:
        """The run of a layout; None if it has not run."""
        return self._ran.get(layout)

    def worst_measured_s(self) -> float | None:
        """The slowest measured step time."""
        return max((one.result.step_time_s for one in self.tried if isinstance(one.result, Measured)), default=None)

    def best(self, standing: Standing) -> Tried | None:
        """The fastest layout that ran within its memory.

        By its measured time, or where such times do not count, by the calibrated estimate.
        """
        ran = [one for one in self._ran.values() if one.feasible_step_s is not None]
        if standing.candidates.time_counts:
            return min(ran, key=lambda one: one.feasible_step_s or 0.0, default=None)
        known = [one for one in ran if one.row is not None]
        return min(known, key=lambda one: float(standing.step_s[one.row]), default=None)

    def time_to_beat(self, standing: Standing) -> Best | None:
        """The best measured time, if measured times count."""
        best = self.best(standing) if standing.candidates.time_counts else None
        if best is None or best.feasible_step_s is None:
            return None
        return Best(key=best.layout.key, step_time_s=best.feasible_step_s)
