"""Told: what the study is told of an asked layout, and how that is kept in the trial so that a restart knows it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Literal, assert_never

from optuna.trial import FrozenTrial, TrialState

from autotune.spec.layout import Layout
from autotune.spec.load import from_json, to_json, trial_result_from_json
from autotune.spec.outcome import Failed, Measured, Status, TrialResult

PENALTY: Final = 1.5
"""What an out-of-memory is told to have taken, times the worst measured step: samplers read finished trials only."""

_LEAST_VIOLATION: Final = 0.01  # positive is all that counts where nobody knows by how much a limit was exceeded

LAYOUT: Final = "layout"
PREDICTED: Final = "predicted"
MEASURED: Final = "measured"
_TOLD: Final = "told"
_RESULT: Final = "result"


class Fate(StrEnum):
    """What became of an asked layout. The last five never ran."""

    MEASURED = "measured"
    OUT_OF_MEMORY = "out-of-memory"
    REFUSED = "refused-as-invalid"
    FAULT = "infrastructure-fault"
    UNKNOWN = "not-a-valid-layout"
    DOES_NOT_FIT = "does-not-fit"
    RULED_OUT = "ruled-out-by-an-out-of-memory"
    CANNOT_WIN = "cannot-win"


@dataclass(frozen=True, kw_only=True, slots=True)
class Prediction:
    """What the cost model said of a layout when it was asked: parts by name, and the factors in them."""

    time_s: dict[str, float]
    memory_bytes: dict[str, float]
    compute_time: float
    communication_time: float
    overhead_s: float
    memory: float

    @property
    def step_s(self) -> float:
        """The step time."""
        return sum(self.time_s.values())

    @property
    def peak_bytes(self) -> float:
        """The peak of the fullest stage."""
        return sum(self.memory_bytes.values())


@dataclass(frozen=True, kw_only=True, slots=True)
class Told:
    """A verdict on an asked layout, for Optuna and for people.

    value: seconds, with "complete" only; constraint: above 0 is infeasible, None where nothing is known of it.
    """

    fate: Fate
    state: Literal["complete", "pruned", "fail"]
    reason: str
    value: float | None = None
    constraint: float | None = None

    @property
    def optuna_state(self) -> TrialState:
        """Optuna's own name for the state."""
        return TrialState[self.state.upper()]


@dataclass(frozen=True, kw_only=True, slots=True)
class Tried:
    """An asked layout, with what was predicted and what became of it.

    row: in the table of layouts, None if it is not in it; result: of the run, None if it did not run.
    """

    number: int
    layout: Layout
    row: int | None
    predicted: Prediction | None
    told: Told
    result: TrialResult | None = None

    @property
    def feasible_step_s(self) -> float | None:
        """The measured step time, if the layout ran within the memory that it may use."""
        within = self.told.constraint is None or self.told.constraint <= 0
        return self.result.step_time_s if isinstance(self.result, Measured) and within else None


def told_of_result(
    result: TrialResult, predicted: Prediction, *, worst_measured_s: float | None, limit_bytes: float
) -> Told:
    """What a run tells. worst_measured_s: the slowest run so far; before the first one the prediction stands in."""
    match result:
        case Measured():
            excess = result.peak_memory_bytes / limit_bytes - 1
            over = f", above the limit by {excess:.1%}" if excess > 0 else ""
            reason = f"measured {result.step_time_s:.4g} s, {predicted.step_s:.4g} s were predicted{over}"
            return Told(
                fate=Fate.MEASURED, state="complete", reason=reason, value=result.step_time_s, constraint=excess
            )
        case Failed(status=Status.OOM):
            penalty_s = PENALTY * (predicted.step_s if worst_measured_s is None else worst_measured_s)
            violation = _violation(predicted.peak_bytes / limit_bytes - 1)
            reason = f"out of memory: {result.evidence}"
            return Told(fate=Fate.OUT_OF_MEMORY, state="complete", reason=reason, value=penalty_s, constraint=violation)
        case Failed(status=Status.INVALID):
            return Told(fate=Fate.REFUSED, state="pruned", reason=f"invalid: {result.evidence}", constraint=1.0)
        case Failed():
            reason = f"{result.status}: {result.evidence}"
            return Told(fate=Fate.FAULT, state="fail", reason=reason)
    assert_never(result)


def told_unknown() -> Told:
    """The proposed values make no layout of the table."""
    reason = "the proposed combination is no valid layout of this space"
    return Told(fate=Fate.UNKNOWN, state="pruned", reason=reason, constraint=1.0)


def told_does_not_fit(predicted: Prediction, limit_bytes: float) -> Told:
    """The cost model says that it does not fit."""
    excess = predicted.peak_bytes / limit_bytes - 1
    reason = f"{predicted.peak_bytes:.4g} bytes are predicted, {limit_bytes:.4g} may be used"
    if excess <= 0:
        reason = "the processes of one node are predicted to need more RAM than it has"
    return Told(fate=Fate.DOES_NOT_FIT, state="pruned", reason=reason, constraint=_violation(excess))


def told_ruled_out(predicted: Prediction, limit_bytes: float) -> Told:
    """Another layout, with no part of its memory larger, ran out of it."""
    reason = "a layout that needs no more of any part of the memory ran out of it"
    violation = _violation(predicted.peak_bytes / limit_bytes - 1)
    return Told(fate=Fate.RULED_OUT, state="pruned", reason=reason, constraint=violation)


def told_cannot_win(low_s: float, best_s: float) -> Told:
    """Even the least time expected of it does not beat the best measured one."""
    reason = f"at least {low_s:.4g} s are expected, the best took {best_s:.4g} s"
    return Told(fate=Fate.CANNOT_WIN, state="pruned", reason=reason, constraint=_violation(low_s / best_s - 1))


def _violation(excess: float) -> float:
    return max(excess, _LEAST_VIOLATION)


def attributes_of(tried: Tried) -> dict[str, Any]:
    """What the trial keeps, as JSON data. The verdict comes last: with it the rest is whole."""
    attributes: dict[str, Any] = {LAYOUT: tried.layout.key}
    if tried.predicted is not None:
        attributes[PREDICTED] = to_json(tried.predicted)
    if isinstance(tried.result, Measured):
        measured = tried.result
        attributes[MEASURED] = {
            "step_time_s": measured.step_time_s,
            "spread_s": measured.spread_s,
            "peak_memory_bytes": measured.peak_memory_bytes,
            "parameters": measured.parameters,
        }
    if tried.result is not None:
        attributes[_RESULT] = to_json(tried.result)
    return {**attributes, _TOLD: to_json(tried.told)}


def told_in(trial: FrozenTrial) -> Told | None:
    """The verdict that the trial keeps; None if it was never reached. Raises InputError if it cannot be read."""
    data = trial.user_attrs.get(_TOLD)
    return None if data is None else from_json(Told, data, where=_where(trial))


def result_in(trial: FrozenTrial) -> TrialResult | None:
    """The result that the trial keeps, None if it did not run."""
    data = trial.user_attrs.get(_RESULT)
    return None if data is None else trial_result_from_json(data, where=_where(trial))


def prediction_in(trial: FrozenTrial) -> Prediction | None:
    """The prediction that the trial keeps."""
    data = trial.user_attrs.get(PREDICTED)
    return None if data is None else from_json(Prediction, data, where=_where(trial))


def _where(trial: FrozenTrial) -> str:
    return f"trial {trial.number} of the journal"
