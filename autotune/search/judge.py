"""What the cost model says of an asked layout before it runs: a reason not to run it, or none."""

from autotune.search.standing import Standing
from autotune.search.stopping import Best, cannot_win
from autotune.search.told import Prediction, Told, told_cannot_win, told_does_not_fit, told_ruled_out


def predict(standing: Standing, row: int) -> Prediction:
    """The calibrated estimate of one row."""
    estimates, factors = standing.estimates, standing.factors
    return Prediction(
        time_s={name: float(column[row]) for name, column in estimates.time.parts.items()},
        memory_bytes={name: float(column[row]) for name, column in estimates.memory.parts.items()},
        compute_time=factors.compute_time,
        communication_time=factors.communication_time,
        overhead_s=factors.overhead_s,
        memory=factors.memory,
    )


def reason_not_to_run(standing: Standing, row: int, predicted: Prediction, best: Best | None) -> Told | None:
    """Another layout's out-of-memory rules it out, it does not fit, or it cannot be expected to win."""
    limit_bytes = standing.candidates.limit_bytes
    if standing.ruled_out[row]:
        return told_ruled_out(predicted, limit_bytes)
    if not standing.may_fit[row]:
        return told_does_not_fit(predicted, limit_bytes)
    low_s = standing.low_s(row)
    if low_s is not None and best is not None and cannot_win(low_s, best):
        return told_cannot_win(low_s, best.step_time_s)
    return None
