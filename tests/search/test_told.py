import pytest
from optuna.trial import TrialState

from autotune.search.told import (
    Fate,
    Prediction,
    Tried,
    attributes_of,
    told_cannot_win,
    told_does_not_fit,
    told_of_result,
    told_ruled_out,
    told_unknown,
)
from autotune.spec.layout import Layout
from autotune.spec.outcome import Failed, Status
from tests.search.toy import GIB, measured

PREDICTED = Prediction(
    time_s={"forward": 1.0, "backward": 2.0},
    memory_bytes={"weights": 8.0 * GIB, "outside": 1.0 * GIB},
    compute_time=1.0,
    communication_time=1.0,
    overhead_s=0.0,
    memory=1.0,
)


def _told(result, *, worst_measured_s=4.0, limit_bytes=10.0 * GIB):
    return told_of_result(result, PREDICTED, worst_measured_s=worst_measured_s, limit_bytes=limit_bytes)


def test_a_measured_layout_is_complete_with_its_step_time_and_its_headroom():
    got = _told(measured(2.5, peak_bytes=9.0 * GIB))

    assert (got.fate, got.optuna_state, got.value) == (Fate.MEASURED, TrialState.COMPLETE, 2.5)
    assert got.constraint == pytest.approx(-0.1)  # 9 of 10 GiB
    assert got.reason == "measured 2.5 s, 3 s were predicted"


def test_a_layout_that_ran_but_held_more_than_the_user_allows_is_complete_and_infeasible():
    got = _told(measured(2.5, peak_bytes=11.0 * GIB))

    assert (got.optuna_state, got.value) == (TrialState.COMPLETE, 2.5)
    assert got.constraint == pytest.approx(0.1)
    assert "above the limit by 10.0%" in got.reason


def test_an_out_of_memory_is_complete_with_one_and_a_half_times_the_worst_measured_and_is_infeasible():
    got = _told(Failed(status=Status.OOM, evidence="rank-3: tried to allocate 2.0 GiB"))

    assert (got.fate, got.optuna_state, got.value) == (Fate.OUT_OF_MEMORY, TrialState.COMPLETE, 6.0)
    assert got.constraint is not None
    assert got.constraint > 0
    assert got.reason == "out of memory: rank-3: tried to allocate 2.0 GiB"


def test_an_out_of_memory_before_anything_is_measured_has_a_finite_penalty_of_the_predicted_time():
    assert _told(Failed(status=Status.OOM, evidence=""), worst_measured_s=None).value == 4.5  # 1.5 · (1 + 2) s


def test_a_predicted_excess_is_the_constraint_of_an_out_of_memory():
    got = _told(Failed(status=Status.OOM, evidence=""), limit_bytes=6.0 * GIB)

    assert got.constraint == pytest.approx(0.5)  # 9 GiB against 6


def test_what_the_worker_refused_as_invalid_is_pruned_and_infeasible():
    got = _told(Failed(status=Status.INVALID, evidence="rank-0: no ZeRO-1"))

    assert (got.fate, got.optuna_state, got.value, got.constraint) == (Fate.REFUSED, TrialState.PRUNED, None, 1.0)


@pytest.mark.parametrize("status", [s for s in Status if s not in (Status.OOM, Status.INVALID)])
def test_any_other_failure_is_told_as_failed_without_a_value_or_a_constraint(status):
    got = _told(Failed(status=status, evidence="why"))

    assert (got.fate, got.optuna_state, got.value, got.constraint) == (Fate.FAULT, TrialState.FAIL, None, None)
    assert got.reason == f"{status.value}: why"


@pytest.mark.parametrize(
    ("told", "fate"),
    [
        (told_unknown(), Fate.UNKNOWN),
        (told_does_not_fit(PREDICTED, 6.0 * GIB), Fate.DOES_NOT_FIT),
        (told_does_not_fit(PREDICTED, 20.0 * GIB), Fate.DOES_NOT_FIT),  # the host's memory is short
        (told_ruled_out(PREDICTED, 20.0 * GIB), Fate.RULED_OUT),
        (told_cannot_win(3.0, 3.0), Fate.CANNOT_WIN),
    ],
)
def test_what_never_ran_is_pruned_without_a_value_and_with_a_positive_constraint(told, fate):
    assert (told.fate, told.optuna_state, told.value) == (fate, TrialState.PRUNED, None)
    assert told.constraint > 0


def test_only_a_measured_run_within_the_memory_has_a_feasible_time():
    def tried(result):
        return Tried(number=0, layout=Layout(), row=0, predicted=PREDICTED, told=_told(result), result=result)

    assert tried(measured(2.5, peak_bytes=9.0 * GIB)).feasible_step_s == 2.5
    assert tried(measured(2.5, peak_bytes=11.0 * GIB)).feasible_step_s is None
    assert tried(Failed(status=Status.OOM, evidence="")).feasible_step_s is None


def test_a_trial_keeps_layout_prediction_measurement_result_and_verdict_in_this_order():
    result = measured(2.5, peak_bytes=9.0 * GIB)
    tried = Tried(number=0, layout=Layout(tp=2), row=0, predicted=PREDICTED, told=_told(result), result=result)

    got = attributes_of(tried)

    assert list(got) == ["layout", "predicted", "measured", "result", "told"]
    assert got["layout"] == "tp2-mbs1"
    assert got["predicted"]["time_s"] == {"forward": 1.0, "backward": 2.0}
    assert got["measured"] == {
        "step_time_s": 2.5, "spread_s": 0.0, "peak_memory_bytes": 9 * GIB, "parameters": 10,
    }  # fmt: skip
