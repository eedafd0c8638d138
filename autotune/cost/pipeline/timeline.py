"""A replayed schedule: when each rank works and waits, and what it holds meanwhile."""

from dataclasses import dataclass

from autotune.cost.pipeline.costs import StageCosts
from autotune.cost.pipeline.memory import live_bytes, resident_bytes
from autotune.cost.pipeline.operations import Schedule


@dataclass(frozen=True, kw_only=True, slots=True)
class Bubble:
    """A wait of one rank. live_bytes: held meanwhile; free_bytes: what is left below the limit."""

    rank: int
    start_s: float
    length_s: float
    live_bytes: float
    free_bytes: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Timeline:
    """start_s[rank][n], end_s[rank][n]: when the n-th operation of a rank runs."""

    schedule: Schedule
    costs: StageCosts
    start_s: tuple[tuple[float, ...], ...]
    end_s: tuple[tuple[float, ...], ...]

    @property
    def makespan_s(self) -> float:
        """From the first start to the last end, over all ranks."""
        return max(ends[-1] for ends in self.end_s)

    @property
    def busy_s(self) -> tuple[float, ...]:
        """Seconds that each rank computes."""
        return tuple(
            sum(end - start for start, end in zip(starts, ends, strict=True))
            for starts, ends in zip(self.start_s, self.end_s, strict=True)
        )

    @property
    def bubble_share(self) -> float:
        """Idle share of all ranks' time from the first start to the last end."""
        return 1 - sum(self.busy_s) / (self.schedule.pp * self.makespan_s)

    @property
    def period_s(self) -> float:
        """Step time where no rank waits for another between two steps: the longest span from first start to last end.

        The zero-bubble papers count bubbles this way (Qi et al. 2023, 2401.10241: the optimizer steps without a
        barrier and is validated afterwards). With a barrier between the steps the makespan counts instead.
        """
        return max(ends[-1] - starts[0] for starts, ends in zip(self.start_s, self.end_s, strict=True))

    @property
    def peak_bytes(self) -> tuple[float, ...]:
        """The most that each rank holds."""
        return tuple(
            max(during for during, _ in live_bytes(self.schedule, self.costs, rank)) for rank in range(self.schedule.pp)
        )

    def bubbles(self, rank: int, *, limit_bytes: float | None = None) -> tuple[Bubble, ...]:
        """The waits of a rank in order, with what is left of limit_bytes; by default of the fullest rank's peak."""
        limit = max(self.peak_bytes) if limit_bytes is None else limit_bytes
        starts = (*self.start_s[rank], self.makespan_s)
        ends = (0.0, *self.end_s[rank])
        lived = live_bytes(self.schedule, self.costs, rank)
        held = (resident_bytes(self.schedule, self.costs, rank), *(after for _, after in lived))
        smallest_s = 1e-9 * self.makespan_s
        return tuple(
            Bubble(rank=rank, start_s=end, length_s=start - end, live_bytes=live, free_bytes=limit - live)
            for start, end, live in zip(starts, ends, held, strict=True)
            if start - end > smallest_s
        )
