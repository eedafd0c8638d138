"""What a trial folder says, in which order of precedence, and what is refused."""

import json
import math
import os
from dataclasses import replace

import pytest

from autotune.spec.outcome import Failed, Measured, RankReport, Status
from autotune.trials.outcome import (
    check_measured,
    model_flops_utilization,
    read_finished,
    read_outcome,
    refuse_impossible_speed,
    write_finished,
)
from tests.process.fake_workers.trial import trial


def measured(**changes: object) -> Measured:
    whole = Measured(
        warmup_step_times_s=(0.9,),
        step_times_s=(0.5, 0.4, 0.6),
        losses=(2.0, 1.0, 0.5, 0.25),
        gradient_norms=(1.0, 1.0, 1.0, 1.0),
        ranks=(RankReport(rank=0, parameters=60), RankReport(rank=1, parameters=40)),
        parameters=100,
    )
    return replace(whole, **changes)


RESULT = """{"warmup_step_times_s": [0.9], "step_times_s": [0.5, 0.4, 0.6], "losses": [2.0, 1.0, 0.5, 0.25],
"gradient_norms": [1.0, 1.0, 1.0, 1.0], "ranks": [{"rank": 0, "parameters": 60}, {"rank": 1, "parameters": 40}],
"parameters": 100, "fingerprint": {}}"""


def rank_failed(folder, rank, status, message, **more):
    (folder / f"rank-{rank}.json").write_text(json.dumps({"status": status, "message": message, **more}))


def test_an_oom_on_any_rank_is_an_oom_whatever_the_exit_code(tmp_path):
    rank_failed(tmp_path, 0, "crash", "connection closed by peer")
    rank_failed(tmp_path, 3, "out-of-memory", "tried to allocate 2.0 GiB")

    for exit_code in (None, 0, 1, -9):
        got = read_outcome(tmp_path, exit_code=exit_code, timed_out=False)

        assert got == Failed(status=Status.OOM, evidence="rank-3: tried to allocate 2.0 GiB")


def test_an_oom_is_an_oom_also_beside_a_result_and_after_the_time_limit(tmp_path):
    rank_failed(tmp_path, 3, "out-of-memory", "tried to allocate 2.0 GiB", phase="measured step 2")
    (tmp_path / "result.json").write_text(RESULT)

    got = read_outcome(tmp_path, exit_code=None, timed_out=True)

    assert got == Failed(status=Status.OOM, evidence="rank-3 in measured step 2: tried to allocate 2.0 GiB")


def test_a_result_counts_although_a_rank_crashed_in_tear_down(tmp_path):
    (tmp_path / "result.json").write_text(RESULT)
    rank_failed(tmp_path, 1, "crash", "destroy_process_group failed")

    assert read_outcome(tmp_path, exit_code=1, timed_out=False) == measured()


def test_the_crash_that_was_written_first_is_the_evidence(tmp_path):
    rank_failed(tmp_path, 0, "crash", "connection closed by peer")
    rank_failed(tmp_path, 2, "crash", "index out of range")
    os.utime(tmp_path / "rank-2.json", ns=(1, 1))

    got = read_outcome(tmp_path, exit_code=1, timed_out=False)

    assert got == Failed(status=Status.CRASH, evidence="rank-2: index out of range")


def test_invalid_comes_before_the_crash_that_follows_from_it(tmp_path):
    rank_failed(tmp_path, 0, "crash", "connection closed by peer")
    rank_failed(tmp_path, 1, "invalid", "FSDP2 has no ZeRO-1")

    got = read_outcome(tmp_path, exit_code=1, timed_out=False)

    assert got == Failed(status=Status.INVALID, evidence="rank-1: FSDP2 has no ZeRO-1")


def test_the_evidence_is_one_line_of_bounded_length(tmp_path):
    rank_failed(tmp_path, 0, "crash", "first\n  second " + "x" * 1000)

    got = read_outcome(tmp_path, exit_code=1, timed_out=False)

    assert isinstance(got, Failed)
    assert got.evidence.startswith("rank-0: first second xxx")
    assert got.evidence.endswith("x…")
    assert len(got.evidence) == len("rank-0: ") + 300


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff\xfe", b"[]", b'{"status": "sad", "message": ""}', b'{"status": "crash"}']
)
def test_a_rank_file_that_nobody_can_read_is_garbage(tmp_path, content):
    (tmp_path / "rank-2.json").write_bytes(content)

    got = read_outcome(tmp_path, exit_code=1, timed_out=False)

    assert isinstance(got, Failed)
    assert got.status is Status.GARBAGE
    assert got.evidence.startswith("rank-2: it failed, but its rank-2.json cannot be read")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[0.5, 0.4, 0.6]", "[]"),
        ("[0.5, 0.4, 0.6]", "[0.5, 0.0]"),
        ("[0.5, 0.4, 0.6]", "[0.5, -1.0]"),
        ("[0.5, 0.4, 0.6]", '"fast"'),
        (', "fingerprint": {}}', ""),
        ('[{"rank": 0, "parameters": 60}, {"rank": 1, "parameters": 40}]', "[]"),
    ],
)
def test_a_result_that_is_torn_or_empty_is_garbage(tmp_path, before, after):
    text = RESULT.replace("\n", " ")
    assert before in text
    (tmp_path / "result.json").write_text(text.replace(before, after))

    got = read_outcome(tmp_path, exit_code=0, timed_out=False)

    assert isinstance(got, Failed)
    assert got.status is Status.GARBAGE
    assert got.evidence.startswith("result.json")


def test_a_timeout_says_how_far_the_ranks_had_come(tmp_path):
    def evidence() -> str:
        got = read_outcome(tmp_path, exit_code=None, timed_out=True, time_limit_s=60)
        assert isinstance(got, Failed)
        assert got.status is Status.TIMEOUT
        return got.evidence

    assert evidence() == "no result after 60 s; no rank had started"

    (tmp_path / "rank-0.pid").write_text("{}")
    (tmp_path / "rank-1.pid").write_text("{}")
    assert evidence() == "no result after 60 s; 2 ranks had started"

    (tmp_path / "rank-1.phase").write_text("warm-up step 2\n")
    assert evidence() == "no result after 60 s; last phase warm-up step 2 (rank-1)"


@pytest.mark.parametrize("exit_code", [-9, 137])
def test_sigkill_from_outside_points_at_the_memory_of_the_host(tmp_path, exit_code):
    got = read_outcome(tmp_path, exit_code=exit_code, timed_out=False)

    assert isinstance(got, Failed)
    assert got.status is Status.CRASH
    assert f"exit code {exit_code}" in got.evidence
    assert "host ran out of memory" in got.evidence


def test_an_end_before_any_rank_started_is_a_launch_failure_not_a_crash(tmp_path):
    (tmp_path / "stderr.log").write_text("python: No module named torch\n")

    launch = read_outcome(tmp_path, exit_code=1, timed_out=False)
    (tmp_path / "rank-0.pid").write_text("{}")
    crash = read_outcome(tmp_path, exit_code=1, timed_out=False)

    assert launch == Failed(
        status=Status.LAUNCH,
        evidence="the launcher ended with exit code 1 before a rank had started: python: No module named torch",
    )
    assert crash == Failed(
        status=Status.CRASH, evidence="the launcher ended with exit code 1: python: No module named torch"
    )


def test_a_result_of_another_trial_is_refused():
    asked = trial(processes=2)

    assert check_measured(measured(), asked, expected_parameters=100) == measured()
    assert check_measured(measured(), asked, expected_parameters=None) == measured()

    fewer = check_measured(measured(), trial(processes=4), expected_parameters=100)
    assert fewer == Failed(status=Status.REFUSED, evidence="ranks [0, 1] reported, 4 processes were asked for")

    other_model = check_measured(measured(), asked, expected_parameters=101)
    assert isinstance(other_model, Failed)
    assert other_model.status is Status.REFUSED
    assert "holds 100 parameters, the model has 101" in other_model.evidence


def test_one_rank_reporting_twice_is_no_second_rank():
    twice = measured(ranks=(RankReport(rank=0, parameters=60), RankReport(rank=0, parameters=40)))

    got = check_measured(twice, trial(processes=2), expected_parameters=100)

    assert got == Failed(status=Status.REFUSED, evidence="ranks [0, 0] reported, 2 processes were asked for")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(("field", "name"), [("losses", "loss"), ("gradient_norms", "gradient norm")])
def test_a_loss_that_is_no_number_is_a_crash(field, name, value):
    broken = measured(**{field: (1.0, 1.0, value, 1.0)})

    got = check_measured(broken, trial(processes=2), expected_parameters=100)

    assert got == Failed(status=Status.CRASH, evidence=f"{name} of step 2 is {value}")


def test_more_than_the_peak_is_refused():
    # The median step is 0.5 s: 2 processes of 1e12 FLOP/s can do 0.5 * 2 * 1e12 = 1e12 FLOP in it.
    peak = {"peak_flops_per_s": 1e12, "processes": 2}
    assert model_flops_utilization(measured(), model_flops_per_step=0.4e12, **peak) == pytest.approx(0.4)
    assert refuse_impossible_speed(measured(), model_flops_per_step=1.0e12, **peak) == measured()

    got = refuse_impossible_speed(measured(), model_flops_per_step=1.52e12, **peak)

    assert isinstance(got, Failed)
    assert got.status is Status.REFUSED
    assert got.evidence.startswith("MFU 152% is above 100 %: 1.52e+12 FLOP in 0.5 s on 2 x 1e+12 FLOP/s")


def test_how_a_trial_ended_is_kept(tmp_path):
    failed = Failed(status=Status.TIMEOUT, evidence="no result after 60 s")
    assert read_finished(tmp_path) is None

    write_finished(tmp_path, failed)
    assert read_finished(tmp_path) == failed

    (tmp_path / "result.json").write_text(RESULT)
    assert read_finished(tmp_path) == failed  # the runner refused what is in result.json

    write_finished(tmp_path, measured())
    assert read_finished(tmp_path) == measured()


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"status": "sad", "evidence": ""}', '{"status": "crash"}'])
def test_an_outcome_that_nobody_can_read_is_no_finished_trial(tmp_path, content):
    (tmp_path / "outcome.json").write_text(content)

    assert read_finished(tmp_path) is None


def test_a_measured_trial_whose_result_was_lost_is_not_finished(tmp_path):
    write_finished(tmp_path, measured())

    assert read_finished(tmp_path) is None


def test_a_diverged_loss_in_a_result_file_is_read_and_then_a_crash(tmp_path):
    (tmp_path / "result.json").write_text(RESULT.replace("0.25]", "NaN]"))

    got = read_outcome(tmp_path, exit_code=0, timed_out=False)

    assert isinstance(got, Measured)
    refused = check_measured(got, trial(processes=2), expected_parameters=100)
    assert refused == Failed(status=Status.CRASH, evidence="loss of step 3 is nan")


def test_a_rank_file_may_say_more_than_it_must(tmp_path):
    rank_failed(tmp_path, 0, "out-of-memory", "tried to allocate 2.0 GiB", traceback=["…"])

    got = read_outcome(tmp_path, exit_code=1, timed_out=False)

    assert got == Failed(status=Status.OOM, evidence="rank-0: tried to allocate 2.0 GiB")
