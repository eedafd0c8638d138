import pytest

from autotune.space.pipeline_rules import PIPELINE_RULES
from autotune.spec.layout import Layout
from tests.examples import llama_3_70b, problem, tiny_model
from tests.space.rows import broken, codes, message


def test_every_stage_needs_a_layer():
    # 80 layers on 16 ranks: 5 chunks a rank at most
    question = problem(model=llama_3_70b(), nodes=2)
    layout = Layout(pp=16, vpp=8, schedule="interleaved")

    got = message("layers-fill-stages", layout, question, PIPELINE_RULES)

    assert got == (
        "pp·vpp = 16·8 = 128 stages, but llama-3-70b has 80 layers and each stage needs one; "
        "with pp=16 vpp is at most 5"
    )


def test_more_pipeline_ranks_than_layers_say_how_many_there_can_be():
    got = message("layers-fill-stages", Layout(pp=8), problem(model=tiny_model(layers=5)), PIPELINE_RULES)

    assert got.endswith("pp is at most 5")


def test_uneven_stages_are_no_fault_of_arithmetic():
    assert codes(Layout(pp=4), problem(model=tiny_model(layers=30)), PIPELINE_RULES) == []


def test_without_a_pipeline_there_are_no_chunks_and_no_schedule_to_choose():
    got = codes(Layout(vpp=2, schedule="interleaved"), problem(), PIPELINE_RULES)

    assert got == ["chunks-need-pipeline", "schedule-needs-pipeline"]


@pytest.mark.parametrize("schedule", ["1f1b", "gpipe", "zb-h1"])
def test_a_schedule_of_one_chunk_refuses_more(schedule):
    got = message("schedule-fixes-chunks", Layout(pp=2, vpp=2, schedule=schedule), problem(), PIPELINE_RULES)

    assert got.startswith(f"schedule {schedule} has 1 chunk on each rank, but vpp=2; give vpp=1, or the schedule")


@pytest.mark.parametrize("schedule", ["zb-v", "v-half", "v-min", "dualpipev"])
def test_a_v_shaped_schedule_has_exactly_two_chunks(schedule):
    question = problem(global_batch_size=64)

    for vpp, expected in ((1, ["schedule-fixes-chunks"]), (2, []), (4, ["schedule-fixes-chunks"])):
        assert codes(Layout(pp=2, vpp=vpp, schedule=schedule), question, PIPELINE_RULES) == expected


@pytest.mark.parametrize("schedule", ["interleaved", "breadth-first", "interleaved-zb"])
def test_an_interleaved_schedule_needs_more_than_one_chunk(schedule):
    assert codes(Layout(pp=2, schedule=schedule), problem(), PIPELINE_RULES) == ["schedule-needs-chunks"]
    assert codes(Layout(pp=2, vpp=2, schedule=schedule), problem(), PIPELINE_RULES) == []


def test_a_pipeline_of_two_may_be_interleaved():
    assert broken(Layout(pp=2, vpp=4, schedule="interleaved"), problem(), PIPELINE_RULES) == ()


def test_bidirectional_schedules_need_an_even_pipeline():
    got = message("schedule-needs-even-pp", Layout(pp=3, schedule="dualpipe"), problem(), PIPELINE_RULES)

    assert got == "schedule dualpipe needs an even pp, but pp=3"


def test_interleaved_micro_batches_come_in_groups_of_pp():
    # batch 40 over dp 2: 20 sequences a replica; with micro-batch 2 there are 10 micro-batches, no multiple of 4.
    # 20 / (size · 4) is whole for sizes 1 and 5.
    layout = Layout(pp=4, vpp=2, schedule="interleaved", dp_replicate=2, micro_batch_size=2)

    got = message("micro-batches-multiple-of-pp", layout, problem(global_batch_size=40), PIPELINE_RULES)

    assert got == (
        "schedule interleaved runs micro-batches in groups of pp=4, but the 10 micro-batches of a step are not a "
        "multiple of 4; micro_batch_size can be 1 or 5"
    )


def test_when_no_micro_batch_size_helps_the_sentence_says_so():
    # batch 6 on one replica of pp 4: 6 is no multiple of 4
    layout = Layout(pp=4, vpp=2, schedule="interleaved")

    got = message("micro-batches-multiple-of-pp", layout, problem(global_batch_size=6), PIPELINE_RULES)

    assert got.endswith(
        "no micro_batch_size helps, since a replica has 6 sequences a step; change pp or the dp degrees"
    )


def test_dualpipe_needs_twice_as_many_micro_batches_as_ranks():
    # pp 4: at least 8
    layout = Layout(pp=4, schedule="dualpipe")

    assert codes(layout, problem(global_batch_size=8), PIPELINE_RULES) == []
    assert message("micro-batches-enough", layout, problem(global_batch_size=7), PIPELINE_RULES) == (
        "schedule dualpipe needs at least 2·pp = 8 micro-batches a step, but there are 7; "
        "lower pp, micro_batch_size or the data-parallel degree"
    )


def test_a_batch_that_is_not_whole_says_nothing_of_micro_batches():
    # 7 sequences do not make micro-batches of 2, which is the batch's fault, not the schedule's
    layout = Layout(pp=2, vpp=2, schedule="interleaved", micro_batch_size=2)

    assert codes(layout, problem(global_batch_size=7), PIPELINE_RULES) == []
