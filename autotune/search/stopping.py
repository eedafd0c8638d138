"""When a search ends, and the sentence that says why."""

from dataclasses import dataclass
from enum import StrEnum

DEFAULT_USELESS_ASKS = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """What a search may spend.

    trials: real runs, those of earlier starts included; deadline_s: reading of the monotonic clock after which no run
    begins; useless_asks: proposals in a row that lead to no run before a sampler is replaced by the cost model's order.
    """

    trials: int
    deadline_s: float | None = None
    useless_asks: int = DEFAULT_USELESS_ASKS


class StopReason(StrEnum):
    """Why no further run begins."""

    BUDGET = "budget-spent"
    DEADLINE = "deadline-passed"
    NONE_LEFT = "no-layout-left"
    NONE_CAN_WIN = "no-layout-can-win"


@dataclass(frozen=True, kw_only=True, slots=True)
class Stop:
    """The reason, and a sentence with the numbers behind it."""

    reason: StopReason
    sentence: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Hope:
    """The best layout that has not run yet: low_s is the least step time expected of it, None while nobody can say."""

    key: str
    expected_s: float
    low_s: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Best:
    """The fastest layout that ran and stayed within the memory."""

    key: str
    step_time_s: float


def spent(budget: Budget, *, runs: int, now_s: float) -> Stop | None:
    """Whether runs or time are used up."""
    if runs >= budget.trials:
        return Stop(reason=StopReason.BUDGET, sentence=f"{runs} of {budget.trials} trials have run")
    if budget.deadline_s is not None and now_s >= budget.deadline_s:
        sentence = f"the time limit passed after {runs} of {budget.trials} trials"
        return Stop(reason=StopReason.DEADLINE, sentence=sentence)
    return None


def hopeless(budget: Budget, *, runs: int, best: Best | None, hope: Hope | None) -> Stop | None:
    """Whether no layout is left that may fit and can be expected to beat the best."""
    after = f"after {runs} of {budget.trials} trials"
    if hope is None:
        sentence = f"{after} every layout that may fit has run or is ruled out by an out-of-memory"
        return Stop(reason=StopReason.NONE_LEFT, sentence=sentence)
    if best is None or not cannot_win(hope.low_s, best):
        return None
    sentence = (
        f"{after} no other layout can be expected to win: the best one left, {hope.key}, is expected to take "
        f"{hope.expected_s:.4g} s and at least {hope.low_s:.4g} s, {best.key} took {best.step_time_s:.4g} s"
    )
    return Stop(reason=StopReason.NONE_CAN_WIN, sentence=sentence)


def cannot_win(low_s: float | None, best: Best | None) -> bool:
    """Whether the least time that is expected of a layout is no less than the best measured one."""
    return low_s is not None and best is not None and low_s >= best.step_time_s
