"""draw_schedule(): from what was typed to a replayed schedule and its files."""

import json
from pathlib import Path

import pytest

from autotune.errors import InputError
from autotune.workflow.schedule import ScheduleRequest, draw_schedule, write_schedule_files


def test_a_backward_is_two_forwards_long_and_half_of_it_is_the_weight_gradient() -> None:
    # 1F1B: (m + p - 1)(1 + 2); ZB-H1: m·3 + (p - 1)(F + B - W) = 24 + 3
    assert draw_schedule(ScheduleRequest(name="1f1b", pp=4, micro_batches=8)).timeline.makespan_s == 33
    assert draw_schedule(ScheduleRequest(name="zb-h1", pp=4, micro_batches=8)).timeline.makespan_s == 27


def test_ratios_and_transfers_change_the_step() -> None:
    # one rank before the other: F, transfer, F, BW, transfer, BW with BW = 3
    request = ScheduleRequest(name="gpipe", pp=2, micro_batches=1, backward_ratio=3, transfer=0.25)
    assert draw_schedule(request).timeline.makespan_s == 8.5

    # ZB-H1 with F = 1, B = 1.5, W = 0.5: 8·3 + 3·(1 + 1.5 - 0.5)
    unequal = ScheduleRequest(name="zb-h1", pp=4, micro_batches=8, weight_gradient_ratio=0.5)
    assert draw_schedule(unequal).timeline.makespan_s == pytest.approx(30)


def test_a_rank_keeps_one_unit_of_a_micro_batch_however_many_chunks_it_has() -> None:
    # interleaved, v = 4: p + (p - 1)/v
    answer = draw_schedule(ScheduleRequest(name="interleaved", pp=4, micro_batches=8, vpp=4))

    assert max(answer.timeline.peak_bytes) == 4 + 3 / 4


def test_the_answer_names_the_engines_that_run_the_schedule() -> None:
    assert "torch" in draw_schedule(ScheduleRequest(name="1f1b", pp=2, micro_batches=2)).engines
    assert draw_schedule(ScheduleRequest(name="chimera", pp=2, micro_batches=2)).engines == ()


def test_faults_of_the_costs_and_of_the_schedule_are_told_together() -> None:
    with pytest.raises(InputError) as caught:
        draw_schedule(ScheduleRequest(name="chimera", pp=3, micro_batches=2, backward_ratio=0, transfer=-1))

    assert [(fault.where, fault.key) for fault in caught.value.faults] == [
        ("--backward-ratio", ""),
        ("--transfer", ""),
        ("schedule", "pp"),
    ]


@pytest.mark.parametrize("ratio", [0, 2, 2.5])
def test_a_weight_gradient_is_a_true_part_of_the_backward(ratio: float) -> None:
    with pytest.raises(InputError, match="a part of the backward is between 0 and --backward-ratio 2"):
        draw_schedule(ScheduleRequest(name="zb-v", pp=2, micro_batches=4, weight_gradient_ratio=ratio))


def test_only_the_files_that_are_asked_for_are_written(tmp_path: Path) -> None:
    answer = draw_schedule(ScheduleRequest(name="1f1b", pp=2, micro_batches=2))
    trace, svg = tmp_path / "t" / "trace.json", tmp_path / "drawn.svg"

    assert write_schedule_files(answer, svg=svg, trace=trace) == (svg, trace)
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["drawn.svg", "trace.json"]
    assert json.loads(trace.read_text())["traceEvents"]
    assert write_schedule_files(answer) == ()
