from dataclasses import replace

import pytest

from autotune.accuracy.axes import errors_by_axis
from tests.accuracy.predicted import base_run, predicted


def test_errors_are_grouped_by_the_values_of_an_axis(tmp_path):
    run = base_run(tmp_path)  # tp 2, 10 s
    wide = {"layout": replace(run.layout, tp=4)}
    rows = [predicted(run, step_time_s=9.0), predicted(run, step_time_s=12.0), predicted(run, step_time_s=5.0, **wide)]

    found = {(errors.axis, errors.value): errors for errors in errors_by_axis(rows)}

    assert found["tp", 2].rows == 2
    assert found["tp", 2].time_mape == pytest.approx(0.15)
    assert found["tp", 2].time_bias == pytest.approx(0.05)
    assert found["tp", 4].time_bias == pytest.approx(-0.5)
    assert found["tp", 4].memory_mape is None


def test_an_axis_on_which_all_rows_agree_is_left_out(tmp_path):
    run = base_run(tmp_path)

    assert errors_by_axis([predicted(run), predicted(run)]) == []
