from autotune.space.arithmetic_rules import COMMON_RULES
from autotune.space.neighbours import repairs
from autotune.space.optional_rules import even_stages
from autotune.spec.layout import Layout
from tests.examples import problem, qwen3_30b_a3b, tiny_model
from tests.space.rows import codes


def test_one_axis_is_changed_where_that_is_enough_and_the_nearest_value_comes_first():
    # 8 GPUs, 2 stages of 4 ranks: ep 8 is too large; 4, 2 and 1 are legal
    layout = Layout(pp=2, ep=8, dp_replicate=4)

    got = repairs(layout, problem(model=qwen3_30b_a3b()), COMMON_RULES)

    assert [near.ep for near in got[:3]] == [4, 2, 1]
    assert all(near == Layout(pp=2, ep=near.ep, dp_replicate=4) for near in got)


def test_when_a_degree_must_change_another_takes_up_the_gpus():
    # 30 layers on pp 4, dp 2: pp 2 divides, and dp_replicate becomes 4 so that no GPU idles
    rules = (*COMMON_RULES, even_stages(needs="Megatron-LM"))
    question = problem(model=tiny_model(layers=30))

    got = repairs(Layout(pp=4, dp_replicate=2), question, rules)

    assert Layout(pp=2, dp_replicate=4) in got
    assert all(near.gpus == 8 for near in got)
    assert all(codes(near, question, rules) == [] for near in got)


def test_a_layout_beyond_the_cluster_is_brought_down_to_all_of_it():
    got = repairs(Layout(tp=8, pp=2), problem(), COMMON_RULES)

    assert got[0] == Layout(tp=4, pp=2)
    assert Layout(tp=8) in got


def test_nothing_is_offered_where_no_small_change_helps():
    # 71 sequences (a prime) and 71 layers, heads and widths on 8 GPUs: only a pipeline of 8 stages divides
    question = problem(
        model=tiny_model(layers=4, heads=71, intermediate_size=71), sequence_length=71, global_batch_size=71
    )

    assert repairs(Layout(tp=8), question, COMMON_RULES) == ()
