from dataclasses import replace

from autotune.space.arithmetic_rules import COMMON_RULES
from autotune.spec.layout import Layout
from autotune.spec.model import MoeSpec
from tests.examples import problem, qwen3_30b_a3b, tiny_model
from tests.space.rows import broken, codes, message


def test_a_layout_that_fills_the_cluster_and_divides_everything_breaks_no_rule():
    layout = Layout(tp=4, pp=2, dp_replicate=1, sequence_parallel=True, micro_batch_size=2)

    assert broken(layout, problem(), COMMON_RULES) == ()


def test_more_gpus_than_the_cluster_has_is_broken_and_names_both_numbers():
    layout = Layout(tp=8, pp=2)

    got = message("gpus-available", layout, problem(), COMMON_RULES)

    assert got == (
        "tp·cp·pp·dp_replicate·dp_shard = 8·1·2·1·1 = 16 GPUs, but 1x8xh100 has 8; lower a degree or take more nodes"
    )


def test_fewer_gpus_than_the_cluster_has_is_legal():
    assert codes(Layout(tp=4), problem(), COMMON_RULES) == []


def test_tp_must_divide_the_query_heads_and_the_sentence_lists_the_degrees_that_do():
    # 52 heads on 3 GPUs: divisors of 52 up to 3 are 1 and 2
    question = problem(model=tiny_model(heads=52), gpus_per_node=3)

    got = message("tp-divides-heads", Layout(tp=3), question, COMMON_RULES)

    assert got == "tp=3 does not divide num_attention_heads=52 of tiny; tp can be 1 or 2, and other GPUs go to pp or dp"


def test_a_prime_number_of_heads_leaves_tp_1():
    # Falcon-7B has 71 heads
    question = problem(model=tiny_model(heads=71))

    assert "tp can be 1, and" in message("tp-divides-heads", Layout(tp=8), question, COMMON_RULES)


def test_28_heads_do_not_split_over_8_ranks():
    assert "tp-divides-heads" in codes(Layout(tp=8), problem(model=tiny_model(heads=28)), COMMON_RULES)


def test_tp_must_divide_the_mlp_width_and_what_it_can_be_respects_the_heads():
    # width 20, heads 8: common divisors up to 8 are 1, 2, 4
    question = problem(model=tiny_model(heads=8, intermediate_size=20))

    got = message("tp-divides-mlp", Layout(tp=8), question, COMMON_RULES)

    assert got == (
        "tp=8 does not divide intermediate_size=20 of tiny; tp can be 1, 2 or 4, and other GPUs go to pp or dp"
    )


def test_a_model_whose_every_layer_is_a_mixture_has_no_dense_width_to_divide():
    moe = MoeSpec(num_experts=8, experts_per_token=2, expert_intermediate_size=64)
    question = problem(model=tiny_model(heads=8, intermediate_size=20, moe=moe))

    assert codes(Layout(tp=8), question, COMMON_RULES) == []


def test_leading_dense_layers_and_shared_experts_are_cut_by_tp():
    moe = MoeSpec(num_experts=8, experts_per_token=2, expert_intermediate_size=64, dense_layers=1)
    shared = replace(moe, dense_layers=0, shared_intermediate_size=20)

    for each in (moe, shared):
        question = problem(model=tiny_model(heads=8, intermediate_size=20, moe=each))
        assert codes(Layout(tp=8), question, COMMON_RULES) == ["tp-divides-mlp"]


def test_context_parallel_wants_two_equal_pieces_a_rank():
    # 4096 / (2·3) is not whole; 6·682 = 4092 and 6·683 = 4098 are
    got = message("cp-divides-sequence", Layout(cp=3), problem(), COMMON_RULES)

    assert got.endswith("sequence lengths near it that work: 4092 or 4098")


def test_without_context_parallel_any_sequence_length_is_legal():
    assert codes(Layout(), problem(sequence_length=4095), COMMON_RULES) == []


def test_with_context_and_sequence_parallel_the_length_is_a_multiple_of_cp_times_lcm_2_tp():
    # cp 4, tp 8: 4·lcm(2, 8) = 32.  cp 2, tp 3: 2·lcm(2, 3) = 12.
    for cp, tp, multiple in ((4, 8, 32), (2, 3, 12)):
        layout = Layout(tp=tp, cp=cp, sequence_parallel=True)
        legal = [
            length
            for length in range(1, 100)
            if not codes(
                layout,
                problem(model=tiny_model(heads=24, intermediate_size=48), nodes=4, sequence_length=length),
                COMMON_RULES,
            )
        ]
        assert legal == list(range(multiple, 100, multiple))


def test_sequence_parallel_without_tp_is_another_spelling_of_a_layout():
    rule = next(rule for rule in COMMON_RULES if rule.code == "sequence-parallel-needs-tp")

    assert codes(Layout(sequence_parallel=True), problem(), COMMON_RULES) == [rule.code]
    assert rule.canonical


def test_a_global_batch_that_does_not_divide_names_the_nearest_that_do():
    # 256 over 7 ranks with micro-batch 2: 14·18 = 252, 14·19 = 266
    question = problem(gpus_per_node=7, global_batch_size=256)
    layout = Layout(dp_replicate=7, micro_batch_size=2)

    got = message("batch-divides", layout, question, COMMON_RULES)

    assert got == (
        "global batch 256 is not a multiple of micro_batch_size·dp_replicate·dp_shard = 2·7·1 = 14; "
        "global batches near it that work: 252 or 266"
    )


def test_a_global_batch_below_one_micro_batch_a_rank_is_broken():
    got = message("batch-divides", Layout(dp_replicate=8), problem(global_batch_size=4), COMMON_RULES)

    assert got.endswith("global batches near it that work: 8")


def test_1568_sequences_are_as_good_as_a_power_of_two_where_they_divide():
    # 1568 = 2^5 · 7^2, so 32 ranks with 49 micro-batches each
    question = problem(nodes=4, global_batch_size=1568)

    assert codes(Layout(dp_replicate=32), question, COMMON_RULES) == []


def test_zero_stage_and_dp_shard_come_together():
    nothing_sharded = message("zero-stage-needs-shards", Layout(dp_shard=8), problem(), COMMON_RULES)
    nothing_to_shard_over = message("zero-stage-needs-shards", Layout(tp=8, zero_stage=3), problem(), COMMON_RULES)

    assert nothing_sharded.startswith("dp_shard=8 with zero_stage=0 shards nothing; give zero_stage 1, 2 or 3")
    assert nothing_to_shard_over.startswith("zero_stage=3 has nothing to shard over with dp_shard=1")


def test_a_dense_model_has_no_expert_degrees():
    got = broken(Layout(ep=2, dp_replicate=8), problem(), COMMON_RULES)

    assert [reason.code for reason in got] == ["dense-has-no-experts"]
    assert "llama-3-8b is dense" in got[0].message


def test_experts_that_do_not_divide_the_ranks_of_a_stage_name_the_largest_ep_that_does():
    # 8 GPUs, pp 2: 4 ranks a stage; etp 1 · ep 8 = 8 does not divide 4
    layout = Layout(pp=2, ep=8, dp_replicate=4)

    got = broken(layout, problem(model=qwen3_30b_a3b()), COMMON_RULES)

    assert [reason.code for reason in got] == ["experts-divide-ranks"]
    assert got[0].message.endswith("= 1·1·4·1 = 4 ranks of a pipeline stage; with etp=1 ep can be at most 4")


def test_ep_larger_than_dp_is_legal_when_it_folds_over_tensor_parallel_ranks():
    # 4 GPUs, tp 2, pp 2: 2 ranks a stage; etp 1 · ep 2 = 2 divides 2; etp 2 · ep 2 = 4 does not
    question = problem(model=qwen3_30b_a3b(), gpus_per_node=4)

    assert codes(Layout(tp=2, pp=2, ep=2, etp=1), question, COMMON_RULES) == []
    assert codes(Layout(tp=2, pp=2, ep=2, etp=2), question, COMMON_RULES) == ["experts-divide-ranks"]


def test_experts_are_shared_out_over_context_parallel_ranks_too():
    # cp 2 · dp 4 = 8 ranks a stage: ep 8 takes all of them
    layout = Layout(cp=2, dp_replicate=4, ep=8)

    assert codes(layout, problem(model=qwen3_30b_a3b()), COMMON_RULES) == []


def test_ep_and_etp_divide_the_experts_and_their_width():
    # 128 experts of width 768 = 2^8 · 3; 9 GPUs: ep can be 1 2 4 8, etp 1 2 3 4 6 8
    question = problem(model=qwen3_30b_a3b(), gpus_per_node=9, global_batch_size=9)
    layout = Layout(dp_replicate=9, ep=9, etp=9)

    assert message("ep-divides-experts", layout, question, COMMON_RULES) == (
        "ep=9 does not divide num_experts=128; ep can be 1, 2, 4 or 8"
    )
    assert message("etp-divides-expert-width", layout, question, COMMON_RULES) == (
        "etp=9 does not divide the expert width 768; etp can be 1, 2, 3, 4, 6 or 8"
    )


def test_all_broken_rules_are_listed_at_once():
    # 64 heads, 256 experts, 3 GPUs, all on one tensor- and expert-parallel group
    moe = MoeSpec(num_experts=256, experts_per_token=8, expert_intermediate_size=64)
    question = problem(model=tiny_model(heads=64, moe=moe), gpus_per_node=3)

    assert codes(Layout(tp=3, ep=3), question, COMMON_RULES) == ["tp-divides-heads", "ep-divides-experts"]


def test_three_gpus_can_be_a_pipeline_or_data_parallel():
    question = problem(gpus_per_node=3, global_batch_size=66)

    for layout in (Layout(pp=3), Layout(dp_shard=3, zero_stage=3), Layout(dp_replicate=3)):
        assert codes(layout, question, COMMON_RULES) == []


def test_codes_are_unique_and_every_rule_names_real_axes():
    all_codes = [rule.code for rule in COMMON_RULES]

    assert len(set(all_codes)) == len(all_codes)
    for rule in COMMON_RULES:
        assert set(rule.axes) <= set(Layout.__dataclass_fields__)
