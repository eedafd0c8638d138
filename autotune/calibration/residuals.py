"""How far calibrated predictions still miss: the interval in which the next run is expected."""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from scipy.special import stdtrit

from autotune.calibration.fit import (
    fitted_scales,
    predicted_framework_bytes,
    predicted_step_s,
    timed_runs,
    weighed_runs,
)
from autotune.calibration.observation import Observation
from autotune.cost.profile import Factors

Interval = tuple[float, float]
"""Lowest and highest expected value, as ratios to the prediction."""

COVERAGE: Final = 0.9  # of the next runs, five in a hundred may be below and five above
MIN_RUNS: Final = 3


def residual_interval(observations: Sequence[Observation], factors: Factors) -> Interval | None:
    """Where the step time of another layout is expected, as ratios to its prediction with `factors`.

    None below three runs: two residuals of two fitted scales say nothing.
    """
    timed = timed_runs(observations)
    logs = [math.log((run.step_time_s or math.nan) / predicted_step_s(run, factors)) for run in timed]
    return _prediction_interval(logs, fitted=fitted_scales(len(timed)))


def memory_residual_interval(observations: Sequence[Observation], factors: Factors) -> Interval | None:
    """The same for the peak inside the framework, from the runs that did not die of it. None below three."""
    held = [run for run in weighed_runs(observations) if run.framework_bytes]
    logs = [math.log((run.framework_bytes or math.nan) / predicted_framework_bytes(run, factors)) for run in held]
    return _prediction_interval(logs, fitted=1)


def _prediction_interval(logs: list[float], *, fitted: int) -> Interval | None:
    """The prediction interval of one more value: mean ± t(n - k) · s · √(1 + 1/n).

    s² = Σ(r - mean)² / (n - k), r: logarithms of measured over predicted, k: fitted numbers.
    """
    count = len(logs)
    if count < MIN_RUNS:
        return None
    freedom = count - fitted
    mean = sum(logs) / count
    scatter = math.sqrt(sum((log - mean) ** 2 for log in logs) / freedom)
    reach = float(stdtrit(freedom, np.float64((1 + COVERAGE) / 2))) * scatter * math.sqrt(1 + 1 / count)
    return math.exp(mean - reach), math.exp(mean + reach)
