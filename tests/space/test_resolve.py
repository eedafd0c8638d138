import pytest

from autotune.space.arithmetic_rules import COMMON_RULES
from autotune.space.resolve import idle_gpus_note, resolve_layout
from autotune.spec.layout import Layout
from autotune.spec.verdict import Origin
from tests.examples import problem, qwen3_30b_a3b
from tests.space.rows import codes


def test_what_is_not_given_is_off_and_left_over_gpus_hold_copies():
    got = resolve_layout({"tp": 2, "pp": 2}, {}, problem())

    assert got.layout == Layout(tp=2, pp=2, dp_replicate=2)
    assert got.origins["tp"] is Origin.GIVEN
    assert got.origins["dp_replicate"] is Origin.DERIVED
    assert got.origins["cp"] is Origin.OFF
    assert got.notes == ()


def test_with_a_zero_stage_left_over_gpus_shard():
    got = resolve_layout({"tp": 2, "zero_stage": 3}, {}, problem())

    assert got.layout == Layout(tp=2, dp_shard=4, zero_stage=3)


def test_the_engines_default_decides_where_left_over_gpus_go():
    got = resolve_layout({"tp": 2}, {"zero_stage": 3, "sequence_parallel": True}, problem())

    assert got.layout == Layout(tp=2, dp_shard=4, zero_stage=3, sequence_parallel=True)
    assert got.origins["zero_stage"] is Origin.ENGINE_DEFAULT


def test_a_given_dp_shard_leaves_the_rest_to_copies():
    got = resolve_layout({"dp_shard": 4, "zero_stage": 2}, {}, problem())

    assert got.layout == Layout(dp_shard=4, dp_replicate=2, zero_stage=2)


def test_dp_shard_without_a_zero_stage_shards_the_optimizer_and_says_so():
    got = resolve_layout({"dp_shard": 8}, {}, problem())

    assert got.layout == Layout(dp_shard=8, zero_stage=1)
    assert got.notes == ("dp_shard=8 was given without a zero_stage: 1 is assumed",)
    assert codes(got.layout, problem(), COMMON_RULES) == []


def test_given_degrees_that_use_fewer_gpus_stay_and_the_idle_ones_are_counted():
    got = resolve_layout({"tp": 2, "dp_replicate": 2, "dp_shard": 1}, {}, problem())

    assert got.layout == Layout(tp=2, dp_replicate=2)
    assert idle_gpus_note(got.layout, problem()) == ("the layout uses 4 of the 8 GPUs of 1x8xh100 and leaves 4 idle")
    assert codes(got.layout, problem(), COMMON_RULES) == []


def test_a_full_cluster_has_no_idle_note():
    assert idle_gpus_note(Layout(tp=8), problem()) is None


def test_degrees_that_do_not_divide_the_gpus_are_noted():
    got = resolve_layout({"pp": 3}, {}, problem())

    assert got.layout == Layout(pp=3, dp_replicate=2)
    assert got.notes == ("tp·cp·pp·dp_shard = 3 does not divide the 8 GPUs: dp_replicate=2 uses 6 of them",)


def test_degrees_beyond_the_cluster_are_left_to_the_rules():
    got = resolve_layout({"tp": 16}, {"zero_stage": 3}, problem())

    assert got.layout == Layout(tp=16)
    assert codes(got.layout, problem(), COMMON_RULES) == ["gpus-available"]


@pytest.mark.parametrize(("schedule", "vpp"), [("zb-v", 2), ("dualpipev", 2), ("gpipe", 1)])
def test_a_schedule_brings_the_chunks_it_implies(schedule, vpp):
    got = resolve_layout({"pp": 8, "schedule": schedule}, {}, problem())

    assert got.layout == Layout(pp=8, vpp=vpp, schedule=schedule)
    assert got.origins["vpp"] is (Origin.DERIVED if vpp > 1 else Origin.OFF)


def test_chunks_without_a_schedule_are_interleaved():
    got = resolve_layout({"pp": 8, "vpp": 4}, {"schedule": "1f1b"}, problem())

    assert got.layout == Layout(pp=8, vpp=4, schedule="interleaved")
    assert got.origins["schedule"] is Origin.DERIVED
    assert got.notes == ("vpp=4 was given without a schedule: interleaved is assumed",)


def test_given_chunks_that_contradict_a_given_schedule_are_left_to_the_rules():
    got = resolve_layout({"pp": 8, "vpp": 4, "schedule": "zb-v"}, {}, problem())

    assert codes(got.layout, problem(), COMMON_RULES) == ["schedule-fixes-chunks"]


def test_engine_defaults_that_mean_nothing_here_are_off():
    defaults = {"schedule": "interleaved", "vpp": 2, "sequence_parallel": True, "etp": "tp", "ep": 8, "zero_stage": 3}

    got = resolve_layout({"dp_replicate": 8}, defaults, problem())

    assert got.layout == Layout(dp_replicate=8)
    assert got.notes == ("the engine's default zero_stage=3 is off: no data-parallel ranks are left to shard over",)


def test_a_zero_stage_with_no_ranks_left_is_noted_and_left_to_the_rules():
    got = resolve_layout({"tp": 8, "zero_stage": 3}, {}, problem())

    assert got.layout == Layout(tp=8, zero_stage=3)
    assert got.notes == ("zero_stage=3 was given, but no data-parallel ranks are left that it could shard over",)
    assert codes(got.layout, problem(), COMMON_RULES) == ["zero-stage-needs-shards"]


def test_a_default_may_follow_another_axis():
    # Megatron-LM's expert tensor degree is tp where nobody says otherwise: 2·2 = 4 does not divide the 2 ranks a stage
    question = problem(model=qwen3_30b_a3b(), gpus_per_node=4)

    got = resolve_layout({"tp": 2, "pp": 2, "ep": 2}, {"etp": "tp"}, question)

    assert got.layout == Layout(tp=2, pp=2, ep=2, etp=2)
    assert got.origins["etp"] is Origin.ENGINE_DEFAULT
    assert codes(got.layout, question, COMMON_RULES) == ["experts-divide-ranks"]
