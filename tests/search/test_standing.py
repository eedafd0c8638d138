import numpy as np
import pytest

from autotune.cost.profile import Factors
from autotune.search.standing import Standing
from autotune.spec.layout import Layout
from autotune.spec.outcome import Failed, Status
from tests.search.toy import Machine, candidates, layouts

OOM = Failed(status=Status.OOM, evidence="")


@pytest.mark.parametrize("row", [0, 7, 23])
def test_a_layout_is_found_in_its_row(row):
    assert candidates().row_of(layouts()[row]) == row


def test_a_layout_that_is_not_in_the_table_has_no_row():
    assert candidates().row_of(Layout(tp=8)) is None


def test_the_best_open_row_is_the_fastest_that_may_fit_and_has_not_run():
    standing = Standing(candidates())
    # By hand: without recomputation and pipeline, tp 1 needs 40 GiB of weights and does not fit; tp 2 takes 3.2 s and
    # needs 1 + 20 + 6 = 27 of 30 GiB at one sequence; four sequences would need 45.
    first = standing.best_open_row()
    assert first is not None
    assert layouts()[first].key == "tp2-shard4-z1-mbs1"

    standing.add(first, Machine().run(0, layouts()[first]), out_of_memory=False)

    second = standing.best_open_row()
    assert second is not None
    assert layouts()[second].key == "tp4-shard2-z1-mbs1"  # 3.6 s


def test_after_an_out_of_memory_no_layout_that_needs_as_much_of_every_part_is_open():
    standing = Standing(candidates())
    dead = layouts().index(Layout(tp=2, dp_shard=4, zero_stage=1))  # 20 GiB of weights, 6 of activations

    standing.add(dead, OOM, out_of_memory=True)

    out = {layouts()[row].key for row in np.flatnonzero(standing.ruled_out)}
    # tp·pp of at most 2 and activations of at least 6 GiB, that is no recomputation.
    assert out == {
        "shard8-z1-mbs1", "shard8-z1-mbs4", "pp2-shard4-z1-mbs1", "pp2-shard4-z1-mbs4",
        "tp2-shard4-z1-mbs1", "tp2-shard4-z1-mbs4",
    }  # fmt: skip


def test_nothing_has_a_low_bound_before_three_runs_whose_times_count():
    standing = Standing(candidates())
    machine = Machine(scatter=(0.02, -0.02))
    for run in range(3):
        assert standing.low_s(0) is None
        row = standing.best_open_row()
        assert row is not None
        standing.add(row, machine.run(run, layouts()[row]), out_of_memory=False)
        standing.recalibrate()

    low_s = standing.low_s(0)
    assert low_s is not None
    assert low_s < standing.step_s[0]


def test_step_times_that_do_not_count_leave_the_time_alone_but_not_the_memory():
    standing = Standing(candidates(time_counts=False))
    machine = Machine(Factors(compute_time=50.0, memory=1.2))
    for row in (10, 16, 17, 18):
        standing.add(row, machine.run(row, layouts()[row]), out_of_memory=False)
    standing.recalibrate()

    assert (standing.factors.compute_time, standing.factors.communication_time) == (1.0, 1.0)
    assert standing.factors.memory == pytest.approx(1.2, rel=0.01)
    assert standing.interval is None
    assert "no step time counts" in standing.calibration


def test_the_order_of_the_runs_does_not_change_the_calibration():
    rows = [9, 11, 16, 17, 18, 20]
    machine = Machine(Factors(compute_time=2.0, communication_time=1.4, memory=1.05))
    results = [(row, machine.run(row, layouts()[row])) for row in rows]

    def factors_after(runs) -> Factors:
        standing = Standing(candidates())
        for row, result in runs:
            standing.add(row, result, out_of_memory=False)
            standing.recalibrate()
        return standing.factors

    one, other = factors_after(results), factors_after(results[::-1])
    assert one.compute_time == pytest.approx(other.compute_time, rel=1e-3)
    assert one.communication_time == pytest.approx(other.communication_time, rel=1e-3)
    assert one.memory == pytest.approx(other.memory, rel=1e-3)
