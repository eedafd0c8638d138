from dataclasses import replace

import pytest

from autotune.accuracy.predict import skipped_run
from autotune.accuracy.summary import summarise
from autotune.spec.measured import MemoryKind
from autotune.units import GIB
from tests.accuracy.predicted import base_run, predicted


@pytest.fixture
def run(tmp_path):
    return base_run(tmp_path)  # 10 s measured, ran


def of(run, source, **changes):
    return replace(run, source=source, run_id=f"{source}-{changes}", **changes)


def test_the_time_figure_of_all_is_the_median_over_sources_so_that_none_outvotes_the_others(run):
    # Errors: long 10 % in each of three rows, short 40 %, other 20 %.
    rows = [predicted(of(run, "long"), step_time_s=11.0) for _ in range(3)]
    rows += [predicted(of(run, "short"), step_time_s=14.0), predicted(of(run, "other"), step_time_s=8.0)]

    summary = summarise(rows, [])

    assert summary.sources["long"].step_time_mape == pytest.approx(0.10)
    assert summary.all.step_time_mape == pytest.approx(0.20)
    assert summary.all.step_time_mape_rows == pytest.approx((3 * 0.10 + 0.40 + 0.20) / 5)
    assert summary.all.step_time_bias == pytest.approx((3 * 0.10 + 0.40 - 0.20) / 5)


def test_memory_is_scored_where_a_peak_can_be_compared(run):
    seen = {"peak_memory_bytes": 8.0 * GIB, "memory_kind": MemoryKind.RESERVED}
    rows = [predicted(run, inside_gib=10.0, **seen), predicted(run)]

    figures = summarise(rows, []).all

    assert (figures.timed, figures.weighed) == (2, 1)
    assert figures.memory_mape == pytest.approx(0.25)
    assert figures.memory_bias == pytest.approx(0.25)


def test_labels_are_counted_whether_or_not_there_is_a_time(run):
    died = replace(run, oom=True, step_time_s=None)
    rows = [predicted(died, inside_gib=90.0), predicted(died, inside_gib=10.0), predicted(run)]

    figures = summarise(rows, []).all

    assert (figures.oom.caught, figures.oom.missed, figures.oom.fitting) == (1, 1, 1)
    assert figures.timed == 1


def test_a_source_of_which_nothing_could_be_predicted_is_still_there(run):
    summary = summarise([predicted(of(run, "good"))], [skipped_run(of(run, "bad"), "no GPU")])

    assert list(summary.sources) == ["bad", "good"]
    assert (summary.sources["bad"].rows, summary.sources["bad"].skipped) == (0, 1)
    assert summary.sources["bad"].step_time_mape is None
    assert summary.all.skipped == 1


def test_coverage_counts_only_rows_that_say_what_they_ran(run):
    rows = [predicted(run), predicted(run), predicted(replace(run, fully_described=False))]
    skipped = [skipped_run(run, "no GPU"), skipped_run(replace(run, fully_described=False), "recompute is not stated")]

    assert summarise(rows, skipped).all.coverage == pytest.approx(2 / 3)


def test_rows_that_were_fitted_to_are_in_no_figure_but_the_coverage(run):
    figures = summarise([predicted(run, step_time_s=11.0)], [], [predicted(run, step_time_s=99.0)]).all

    assert (figures.rows, figures.step_time_mape_rows) == (1, pytest.approx(0.1))
    assert (figures.described, figures.coverage) == (2, 1.0)
