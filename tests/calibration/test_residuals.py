import math

import pytest

from autotune.calibration.residuals import memory_residual_interval, residual_interval
from autotune.cost.profile import Factors
from tests.calibration.runs import GIB, predicted, run

ERRORS = (0.02, -0.02, 0.0, 0.01)


def _runs(errors):
    return [run(2.0, 0.5, Factors(), error=error) for error in errors]


@pytest.mark.parametrize("count", [0, 1, 2])
def test_fewer_than_three_runs_say_nothing_about_the_next(count):
    assert residual_interval(_runs(ERRORS[:count]), Factors()) is None
    assert memory_residual_interval(_runs(ERRORS[:count]), Factors()) is None


def test_the_interval_is_students_prediction_interval_of_the_logarithms():
    low, high = residual_interval(_runs((0.02, -0.02, 0.0)), Factors())

    # log 1.02 = 0.019803, log 0.98 = -0.020203, 0: mean -0.000133, Σ(r - mean)² = 0.00080026. Three runs less two
    # fitted scales leave one degree of freedom: s = 0.028289, t(0.95, 1) = 6.3138, √(1 + 1/3) = 1.154701.
    reach = 6.3138 * 0.028289 * 1.154701
    assert math.log(low) == pytest.approx(-0.000133 - reach, rel=1e-3)
    assert math.log(high) == pytest.approx(-0.000133 + reach, rel=1e-3)


def test_memory_has_one_fitted_factor_so_that_three_runs_leave_two_degrees_of_freedom():
    low, high = memory_residual_interval(_runs((0.02, -0.02, 0.0)), Factors())

    reach = 2.91999 * math.sqrt(0.00080026 / 2) * 1.154701  # t(0.95, 2) = 2.91999
    assert math.log(high) - math.log(low) == pytest.approx(2 * reach, rel=1e-3)


def test_more_scatter_widens_the_interval_and_a_biased_model_shifts_it():
    calm = residual_interval(_runs(ERRORS), Factors())
    wild = residual_interval(_runs([error * 3 for error in ERRORS]), Factors())
    shifted = residual_interval(_runs(ERRORS), Factors(compute_time=0.5, communication_time=0.5))

    assert wild[0] < calm[0] < 1 < calm[1] < wild[1]
    assert shifted == pytest.approx((calm[0] * 2, calm[1] * 2))


def test_runs_whose_time_does_not_count_are_no_evidence_about_time():
    runs = [predicted(1.0, 0.0, step_time_s=1.0, time_counts=False, framework_bytes=8.0 * GIB)] * 5

    assert residual_interval(runs, Factors()) is None
    assert memory_residual_interval(runs, Factors()) is not None


def test_a_run_that_died_of_memory_has_no_residual():
    runs = [predicted(1.0, 0.0, time_counts=False, exceeded_bytes=9.0 * GIB)] * 5

    assert memory_residual_interval(runs, Factors()) is None
