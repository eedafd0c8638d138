from autotune.space.arithmetic_rules import COMMON_RULES
from autotune.space.emptiness import nearest_batches, ways_out, why_empty
from autotune.space.enumeration import enumerate_layouts
from autotune.spec.search_space import AxisChoice, SearchSpace
from tests.examples import problem, tiny_model
from tests.space.rows import space_of

ONLY_1F1B = ("1f1b",)


def why(space, question):
    return why_empty(enumerate_layouts(space, question, COMMON_RULES, schedules=ONLY_1F1B))


def test_a_pinned_value_that_no_layout_has_is_answered_with_its_rule():
    got = why(space_of(tp=(3,), dp_replicate=None), problem())

    # 1 value of tp · 4 divisors of 8
    assert got == (
        "none of the 4 combinations is a legal layout\n"
        "tp-divides-heads: tp=3 does not divide num_attention_heads=32 of llama-3-8b; "
        "tp can be 1, 2, 4 or 8, and other GPUs go to pp or dp"
    )


def test_degrees_that_miss_the_number_of_gpus_say_which_product_they_make():
    got = why(space_of(tp=(2,), pp=(2,), dp_replicate=(1,)), problem())

    assert "uses-all-gpus: pp·tp·cp·dp_shard·dp_replicate = 2·2·1·1·1 = 4 is not the 8 GPUs of 1x8xh100" in got


def test_a_spelling_rule_is_not_the_reason_while_another_rule_is():
    # vpp=3 falls at pp=1 as a spelling, and at pp=2 since 1f1b has one chunk
    got = enumerate_layouts(space_of(pp=(1, 2), vpp=(3,)), problem(), COMMON_RULES, schedules=ONLY_1F1B)

    assert [reason.code for reason in got.emptied_by] == ["schedule-fixes-chunks"]


def test_an_axis_whose_maximum_leaves_nothing_is_named():
    space = SearchSpace(axes={"tp": AxisChoice(values=(4, 8), maximum=2)})

    assert "the space allows no value of tp" in why(space, problem())


def test_the_axis_to_free_is_named_with_the_values_it_then_has():
    # 8 GPUs, dp 1 or 8: with tp free and dp_replicate 1, tp must be 8; freeing dp_replicate does not help tp=3
    space = space_of(tp=(3,), dp_replicate=(1,))

    got = ways_out(space, problem(), COMMON_RULES, schedules=ONLY_1F1B)

    assert got == ("with the other axes as given, tp can be 8",)


def test_a_batch_that_nothing_divides_names_the_nearest_that_work():
    # dp is 7 and micro-batch 2: multiples of 14 around 256
    question = problem(model=tiny_model(heads=4), gpus_per_node=7, global_batch_size=256)
    space = space_of(dp_replicate=(7,), micro_batch_size=(2,))

    assert why(space, question).endswith("global batches near it that work: 252 or 266")
    assert nearest_batches(space, question, COMMON_RULES, schedules=ONLY_1F1B) == (252, 266)


def test_the_nearest_batch_is_one_that_the_schedule_takes_too():
    # pp 4 interleaved, dp 2: multiples of 8 around 12; micro-batches may be any size
    question = problem(gpus_per_node=8, global_batch_size=12)
    space = space_of(pp=(4,), vpp=(2,), schedule=("interleaved",), dp_replicate=(2,), micro_batch_size=None)

    got = nearest_batches(space, question, COMMON_RULES, schedules=("1f1b", "interleaved"))

    assert got == (8, 16)


def test_no_batch_is_offered_where_the_batch_is_not_the_trouble():
    assert nearest_batches(space_of(tp=(3,)), problem(), COMMON_RULES, schedules=ONLY_1F1B) == ()
