from dataclasses import replace

import pytest

from autotune.accuracy.sweeps import score_sweeps, sweeps_of
from tests.accuracy.predicted import base_run, predicted


@pytest.fixture
def run(tmp_path):
    return base_run(tmp_path)


def row(run, micro_batch_size, said_s, took_s, **changes):
    """A layout of that micro-batch, said to take one time and measured to take another."""
    measured = replace(run, step_time_s=took_s)
    layout = replace(run.layout, micro_batch_size=micro_batch_size)
    return predicted(measured, step_time_s=said_s, layout=layout, **changes)


def test_a_sweep_of_five_layouts_is_ranked(run):
    rows = [row(run, 1, 5, 50), row(run, 2, 4, 40), row(run, 4, 2, 30), row(run, 8, 1, 22), row(run, 16, 3, 20)]

    (score,) = score_sweeps(rows)

    # Ranks 5 4 2 1 3 against 5 4 3 2 1: Σd² = 0+0+1+1+4 = 6, 1 - 6·6/(5·24) = 0.7. 22 over 20 is a regret of 10 %.
    assert score.layouts == 5
    assert score.spearman == pytest.approx(0.7)
    assert score.regret == pytest.approx(0.1)
    assert (score.first_pick, score.best) == (rows[3].run.layout.key, rows[4].run.layout.key)


def test_four_layouts_are_too_few_and_a_repeat_is_no_fifth(run):
    rows = [row(run, size, size, size) for size in (1, 2, 4, 8)]

    assert score_sweeps([*rows, row(run, 8, 8, 9)]) == []


def test_repeats_of_a_layout_are_averaged(run):
    rows = [row(run, size, size, 10.0 * size) for size in (1, 2, 4, 8, 16)]

    (score,) = score_sweeps([*rows, row(run, 1, 1, 30.0)])

    # The first pick took 10 and 30, on average 20: as fast as the second, so no regret.
    assert score.regret == pytest.approx(0.0)


def test_rows_without_a_time_take_no_part_in_a_ranking(run):
    rows = [row(run, size, size, size) for size in (1, 2, 4, 8)]

    assert score_sweeps([*rows, row(run, 16, 16, 16, time_counts=False)]) == []


def test_sweeps_are_kept_apart(run):
    other = replace(run, sweep=replace(run.sweep, global_batch_size=256))
    rows = [row(run, 1, 1, 1), row(other, 1, 1, 1)]

    assert [len(members) for members in sweeps_of(rows).values()] == [1, 1]
