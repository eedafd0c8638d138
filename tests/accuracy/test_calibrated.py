from dataclasses import replace

import pytest

from autotune.accuracy.calibrated import calibrate_sweeps, observation, search_order
from autotune.accuracy.predict import predict
from autotune.spec.measured import MemoryKind
from autotune.units import GIB
from tests.accuracy.predicted import base_run, predicted
from tests.accuracy.runs import runs_of

LAYOUTS = [
    {"tp": "2"},
    {"tp": "4", "dp": "2"},
    {"tp": "8", "dp": "1"},
    {"tp": "2", "micro_batch": "2"},
    {"recompute": "full"},
]


def slowed_runs(tmp_path, factor):
    """Runs that took `factor` times what the cost model says."""
    rows, _ = predict(runs_of(tmp_path, *LAYOUTS))
    return [replace(row.run, step_time_s=factor * row.step_time_s) for row in rows]


def test_a_cluster_that_is_slower_throughout_is_learnt_from_three_layouts(tmp_path):
    rows, _ = predict(slowed_runs(tmp_path, 1.5))
    assert all(row.time_error == pytest.approx(1 / 1.5 - 1) for row in rows)

    calibrated = calibrate_sweeps(rows, 3)

    assert len(calibrated.rest) == 2
    # A third is gone but for what the fit holds back where three runs cannot tell compute from communication.
    assert all(abs(row.time_error or 1.0) < 0.04 for row in calibrated.rest)


def test_the_layouts_that_a_search_would_run_first_are_fitted_to_and_no_others(tmp_path):
    rows, _ = predict(slowed_runs(tmp_path, 1.5))
    first = [row.run.run_id for row in search_order(rows)][:2]

    calibrated = calibrate_sweeps(rows, 2)

    assert sorted(row.run.run_id for row in calibrated.taken) == sorted(first)
    assert len(calibrated.rest) + len(calibrated.taken) == len(rows)


def test_a_repeat_of_a_fitted_layout_is_not_scored(tmp_path):
    runs = slowed_runs(tmp_path, 1.5)
    rows, _ = predict([*runs, *(replace(run, run_id=f"again-{run.run_id}") for run in runs)])

    calibrated = calibrate_sweeps(rows, 4)

    assert len(calibrated.taken) == 8
    assert len({row.run.layout.key for row in calibrated.rest}) == 1


def test_a_sweep_with_no_more_layouts_than_are_fitted_has_nothing_left(tmp_path):
    rows, _ = predict(slowed_runs(tmp_path, 1.5))

    calibrated = calibrate_sweeps(rows, 5)

    assert (len(calibrated.rest), len(calibrated.taken)) == (0, 5)


def test_one_sweep_teaches_another_nothing(tmp_path):
    runs = slowed_runs(tmp_path, 1.5)
    elsewhere = [replace(run, run_id=f"else-{run.run_id}", step_time_s=run.step_time_s / 1.5) for run in runs]
    elsewhere = [replace(run, sweep=replace(run.sweep, source="elsewhere")) for run in elsewhere]
    rows, _ = predict([*runs, *elsewhere])

    calibrated = calibrate_sweeps(rows, 3)

    scales = {row.run.sweep.source: row.factors.compute_time for row in calibrated.rest}
    assert scales["somebody"] == pytest.approx(1.5, rel=0.05)
    assert scales["elsewhere"] == pytest.approx(1.0, rel=0.05)


def test_what_is_predicted_not_to_fit_is_run_last(tmp_path):
    run = base_run(tmp_path)
    fast, slow = predicted(run, step_time_s=1.0, inside_gib=90.0), predicted(run, step_time_s=2.0)

    assert search_order([fast, slow]) == [slow, fast]


@pytest.mark.parametrize(
    ("kind", "framework_gib"),
    [(MemoryKind.RESERVED, 20.0), (MemoryKind.ALLOCATED, 20.0 * 1.04), (MemoryKind.DEVICE, 18.0)],
)
def test_a_peak_is_observed_as_what_the_framework_held(tmp_path, kind, framework_gib):
    # The prediction has 4 % of slack and 2 GiB outside the framework in it.
    seen = predicted(base_run(tmp_path), memory_kind=kind, peak_memory_bytes=20.0 * GIB)

    assert observation(seen).framework_bytes == pytest.approx(framework_gib * GIB)


def test_a_run_that_died_of_memory_says_only_what_was_not_enough(tmp_path):
    died = observation(predicted(base_run(tmp_path), oom=True, limit_gib=80.0, outside_gib=2.0))

    assert (died.step_time_s, died.framework_bytes) == (None, None)
    assert died.exceeded_bytes == pytest.approx(78 * GIB)
