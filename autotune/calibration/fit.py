"""Fits the factors of the cost model to observed runs: robust, and drawn towards 1 where runs are few.

    t  ≈ a · C / a₀ + b · X / b₀ + o          a: compute_time, b: communication_time, o: overhead_s
    M  ≈ μ · (peak - outside) / μ₀            μ: memory

C, X: the compute and the communication parts as predicted with the factors a₀, b₀, μ₀. Errors are relative, so the
logarithms are compared; a soft L1 loss keeps one odd run from deciding (Huber 1964, "Robust estimation of a location
parameter").
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median
from typing import Final

import numpy as np
from scipy.optimize import least_squares

from autotune.calibration.observation import (
    COMMUNICATION_PARTS,
    COMPUTE_PARTS,
    OUTSIDE_PART,
    OVERHEAD_PART,
    Observation,
)
from autotune.cost.profile import Factors
from autotune.spec.layout import FloatColumn

# How a few runs weigh against the formulas. Step times of a fitted analytic model are known to miss by 5.6 % on average
# (SimuMax, docs/b200/b200_release_v1.2_summary.md, 43 rows on B200). The other two are choices, not measurements: one
# standard deviation of what we expect of the formulas before anything is measured.
RUN_LOG_SCATTER: Final = 0.056
PRIOR_LOG_SCALE: Final = math.log(2.0)
OVERHEAD_SHARE: Final = 0.1  # of the median step

EXPLAINABLE_EXCESS: Final = 2.0
"""An out-of-memory above this many times the prediction is no matter of scale: somebody else held the memory, or a part
is missing. Fitted, one such run would make every layout look too large."""

RUNS_FOR_TWO_SCALES: Final = 2
RUNS_FOR_OVERHEAD: Final = 4

_MAX_ROUNDS: Final = 8
_SETTLED: Final = 1e-4


def fit_factors(observations: Sequence[Observation], *, previous: Factors) -> Factors:
    """The factors that explain the observations best; those of which they say nothing stay as in `previous`.

    One run gives one scale for all time; compute and communication come apart from two runs on, the overhead from
    four.
    """
    timed, weighed = timed_runs(observations), weighed_runs(observations)
    factors = replace(previous, fitted_to=sum(_is_timed(run) or _is_weighed(run) for run in observations))
    if timed:
        factors = _fit_time(timed, factors)
    if weighed:
        factors = _fit_memory(weighed, factors)
    return factors


def calibrate(predict: Callable[[Factors], Sequence[Observation]], *, start: Factors | None = None) -> Factors:
    """Fit, predict the observed layouts again with the new factors, and repeat until that changes nothing.

    The parts do not simply scale: slower links expose communication that compute hid before.
    """
    factors = start or Factors()
    for _ in range(_MAX_ROUNDS):
        fitted = fit_factors(predict(factors), previous=factors)
        settled = _distance(fitted, factors) < _SETTLED
        factors = fitted
        if settled:
            break
    return factors


def fit_note(observations: Sequence[Observation]) -> str:
    """One sentence on what the runs were enough for."""
    time, memory = len(timed_runs(observations)), len(weighed_runs(observations))
    if time == 0:
        timing = "no step time counts, so the predicted times are those of the formulas"
    elif time < RUNS_FOR_TWO_SCALES:
        timing = "one step time counts: too few to tell compute from communication, both have one scale"
    elif time < RUNS_FOR_OVERHEAD:
        timing = f"{time} step times count: compute and communication are fitted, too few for an overhead per step"
    else:
        timing = f"{time} step times count: compute, communication and an overhead per step are fitted"
    held = f"memory is fitted to {memory} runs" if memory > 1 else "memory is fitted to one run"
    return f"{timing}; {held if memory else 'no run says what memory it held'}"


def timed_runs(observations: Sequence[Observation]) -> list[Observation]:
    """Those whose step time says something about the target."""
    return [observation for observation in observations if _is_timed(observation)]


def weighed_runs(observations: Sequence[Observation]) -> list[Observation]:
    """Those that say what memory the framework held, or what was not enough for it."""
    return [observation for observation in observations if _is_weighed(observation)]


def _is_timed(observation: Observation) -> bool:
    seen = observation.time_counts and observation.step_time_s is not None
    return seen and predicted_step_s(observation, Factors()) > 0


def _is_weighed(observation: Observation) -> bool:
    predicted_bytes = predicted_framework_bytes(observation, Factors())
    if observation.framework_bytes is not None:
        return predicted_bytes > 0
    return 0 < (observation.exceeded_bytes or 0.0) <= EXPLAINABLE_EXCESS * predicted_bytes


def predicted_step_s(observation: Observation, factors: Factors) -> float:
    """The step time with other factors, as far as the parts simply scale."""
    compute_s, communication_s = _unscaled_s(observation)
    return factors.compute_time * compute_s + factors.communication_time * communication_s + factors.overhead_s


def predicted_framework_bytes(observation: Observation, factors: Factors) -> float:
    """The peak inside the framework with another memory factor."""
    inside_bytes = sum(size for name, size in observation.memory_parts_bytes.items() if name != OUTSIDE_PART)
    return factors.memory * inside_bytes / observation.predicted_with.memory


def fitted_scales(timed: int) -> int:
    """How many numbers a fit to this many step times determines."""
    return 1 if timed < RUNS_FOR_TWO_SCALES else 2 if timed < RUNS_FOR_OVERHEAD else 3


def _unscaled_s(observation: Observation) -> tuple[float, float]:
    """Compute and communication as the formulas alone have them. Raises KeyError for a part that is neither."""
    seconds = {COMPUTE_PARTS: 0.0, COMMUNICATION_PARTS: 0.0}
    group = {name: names for names in seconds for name in names}
    for name, part_s in observation.time_parts_s.items():
        if name != OVERHEAD_PART:
            seconds[group[name]] += part_s
    old = observation.predicted_with
    return seconds[COMPUTE_PARTS] / old.compute_time, seconds[COMMUNICATION_PARTS] / old.communication_time


def _fit_time(timed: list[Observation], factors: Factors) -> Factors:
    """Least squares over log a, log b and the overhead's share of a step.

    The prior holds a near 1, and b near both a and 1: where no run communicates, b follows a half of the way.
    """
    compute_s, communication_s = np.array([_unscaled_s(observation) for observation in timed]).T
    measured_s = np.array([observation.step_time_s for observation in timed], dtype=np.float64)
    typical_s = median(measured_s.tolist())
    scales = fitted_scales(len(timed))

    def factors_at(x: FloatColumn) -> tuple[float, float, float]:
        log_compute = float(x[0])
        log_communication = float(x[1]) if scales > 1 else log_compute
        return log_compute, log_communication, float(x[2]) if scales > 2 else 0.0

    def residuals(x: FloatColumn) -> FloatColumn:
        a, b, share = factors_at(x)
        predicted_s = math.exp(a) * compute_s + math.exp(b) * communication_s + share * typical_s
        runs = np.log(predicted_s / measured_s) / RUN_LOG_SCATTER
        prior = (a / PRIOR_LOG_SCALE, b / PRIOR_LOG_SCALE, (a - b) / PRIOR_LOG_SCALE, share / OVERHEAD_SHARE)
        return np.concatenate([_softened(runs), prior])

    lower = np.array([-np.inf, -np.inf, 0.0])[:scales]
    start = np.array([0.0, 0.0, OVERHEAD_SHARE / 10])[:scales]
    found = least_squares(residuals, start, bounds=(lower, np.full(scales, np.inf)))
    a, b, share = factors_at(found.x)
    return replace(factors, compute_time=math.exp(a), communication_time=math.exp(b), overhead_s=share * typical_s)


def _fit_memory(weighed: list[Observation], factors: Factors) -> Factors:
    """Least squares over log μ. A run that died of memory pulls only while the prediction is below what it exceeded."""
    predicted = np.array([predicted_framework_bytes(observation, Factors()) for observation in weighed])
    seen = np.array([observation.framework_bytes or observation.exceeded_bytes for observation in weighed], float)
    only_exceeded = np.array([not observation.framework_bytes for observation in weighed])

    def residuals(x: FloatColumn) -> FloatColumn:
        error = float(x[0]) + np.log(predicted / seen)
        runs = np.where(only_exceeded, np.minimum(error, 0.0), error) / RUN_LOG_SCATTER
        return np.append(_softened(runs), x[0] / PRIOR_LOG_SCALE)

    found = least_squares(residuals, np.zeros(1))
    return replace(factors, memory=math.exp(float(found.x[0])))


def _softened(errors: FloatColumn) -> FloatColumn:
    """Residuals whose squares are the soft L1 loss 2·(√(1 + e²) - 1): quadratic when small, linear when large."""
    return np.asarray(np.sign(errors) * np.sqrt(2.0 * (np.hypot(1.0, errors) - 1.0)))


def _distance(one: Factors, other: Factors) -> float:
    """The largest relative change; an overhead counts against a second."""
    pairs = (
        (one.compute_time, other.compute_time),
        (one.communication_time, other.communication_time),
        (one.memory, other.memory),
    )
    scales = max(abs(math.log(new / old)) for new, old in pairs)
    return max(scales, abs(one.overhead_s - other.overhead_s))
