from dataclasses import fields, replace

import numpy as np
import pytest

from autotune.accuracy.predict import engine_of, predict, profile_of
from autotune.cost.estimate import estimate
from autotune.cost.profile import Factors
from autotune.engines.registry import ENGINES
from autotune.spec.layout import LayoutTable
from tests.accuracy.runs import runs_of


def test_a_prediction_is_that_of_the_cost_model_with_the_engines_habits(tmp_path):
    (run,) = runs_of(tmp_path, {})

    (row,), skipped = predict([run])

    expected = estimate(LayoutTable.of([run.layout]), run.problem, ENGINES["megatron-lm"].memory, Factors())
    assert skipped == []
    assert row.step_time_s == pytest.approx(float(expected.time.step_s[0]))
    assert row.device_bytes == pytest.approx(float(expected.memory.peak_bytes[0]))


def test_a_prediction_never_sees_what_was_measured(tmp_path):
    blind = {"step_time_s": "", "oom": ""}
    seeing = {"step_time_s": "3", "oom": "1", "peak_memory_gib": "5", "memory_kind": "device", "mfu": "40"}
    runs = runs_of(tmp_path, blind, seeing)

    (one, other), _ = predict(runs)

    assert (one.time_parts_s, one.memory_parts_bytes) == (other.time_parts_s, other.memory_parts_bytes)


def test_a_run_is_predicted_alike_alone_and_among_others(tmp_path):
    runs = runs_of(tmp_path, {}, {"tp": "4", "dp": "2"}, {"seq": "4096"}, {"recompute": "full"})

    together, _ = predict(runs)

    for run, row in zip(runs, together, strict=True):
        (alone,), _ = predict([run])
        assert alone.run == row.run
        assert list(alone.time_parts_s.values()) == pytest.approx(list(row.time_parts_s.values()), rel=1e-12)


def test_predictions_keep_the_order_of_the_runs(tmp_path):
    runs = runs_of(tmp_path, {"seq": "4096"}, {}, {"seq": "4096", "tp": "4", "dp": "2"}, {})

    rows, _ = predict(runs)

    assert [row.run.run_id for row in rows] == [run.run_id for run in runs]


def test_a_layout_that_no_arithmetic_allows_is_listed_with_the_broken_rule(tmp_path):
    runs = runs_of(tmp_path, {"micro_batch": "3"}, {})  # 128 sequences are no multiple of 3 · 4

    rows, (skipped,) = predict(runs)

    assert [row.run.run_id for row in rows] == ["run-1"]
    assert skipped.run_id == "run-0"
    assert skipped.reason.startswith("global batch 128 is not a multiple of")


def test_another_spelling_of_a_layout_is_no_reason_to_skip_it(tmp_path):
    fsdp = {"tp": "1", "pp": "1", "cp": "16", "dp": "1", "zero_stage": "3", "framework": "torchtitan", "seq": "32768"}
    rows, skipped = predict(runs_of(tmp_path, fsdp))

    assert (len(rows), skipped) == (1, [])


def test_a_precision_that_the_gpu_lacks_is_a_reason(tmp_path):
    runs = runs_of(tmp_path, {"gpu": "A100-SXM-80GB", "precision": "fp8", "intra_gbps": "", "inter_gbps": ""})

    rows, (skipped,) = predict(runs)

    assert rows == []
    assert "a100 has no peak rate for fp8" in skipped.reason


def test_the_best_engine_that_there_is_describes_a_framework(tmp_path):
    (run,) = runs_of(tmp_path, {"framework": "nanotron"})

    assert engine_of(replace(run, engines=("no-such-engine", "torchtitan", "torch"))) == "torchtitan"
    assert engine_of(run) in run.engines


def test_what_a_run_computes_again_wins_over_what_its_engine_would(tmp_path):
    own, named = runs_of(tmp_path, {"recompute": "selective:op"}, {"recompute": "selective:layernorm"})

    assert profile_of(own).selective_recompute == ENGINES["megatron-lm"].memory.selective_recompute
    assert profile_of(named).selective_recompute == ("norms",)
    assert {
        f.name
        for f in fields(profile_of(own))
        if getattr(profile_of(own), f.name) != getattr(profile_of(named), f.name)
    } == {"selective_recompute"}


def test_factors_are_those_of_the_run(tmp_path):
    runs = runs_of(tmp_path, {}, {"tp": "4", "dp": "2"})
    plain, _ = predict(runs)

    slowed, _ = predict(runs, {"run-1": Factors(compute_time=2.0, communication_time=2.0)})

    ratios = np.array([slow.step_time_s / row.step_time_s for slow, row in zip(slowed, plain, strict=True)])
    assert ratios == pytest.approx([1.0, 2.0])
