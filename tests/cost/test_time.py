from dataclasses import replace

import numpy as np
import pytest

from autotune.cost.profile import Factors
from autotune.spec.layout import Layout
from tests.cost.architectures import LLAMA_32_1B
from tests.cost.profiles import estimate_of, only_copy_profile
from tests.examples import llama_3_8b, llama_3_70b, problem


def test_compute_is_the_models_operations_at_the_sustained_rate_and_a_little_more() -> None:
    # Llama-3 8B, 8 sequences of 4096 on 8 GPUs of 989e12 * 0.7 operations a second: a token needs 48.25 GFLOP, of
    # which 0.1 go over head and layers as 4096 * 48.25e9 = 1.976e14 a GPU: 0.2855 s. Flash attention runs below the
    # rate of products and memory-bound operations come on top: between 5 and 35 % more.
    time = estimate_of([Layout(dp_replicate=8)], problem(global_batch_size=8)).time
    compute = time.forward_s + time.backward_s + time.logits_s

    assert 1.05 < compute[0] / 0.2855 < 1.35


def test_the_bubble_of_1f1b_is_p_minus_1_passes_of_a_rank() -> None:
    # pp 4, 16 micro-batches of one sequence: forward and backward of one are 1/16 of the step's
    time = estimate_of([Layout(pp=4)], problem(global_batch_size=16)).time

    assert time.pipeline_bubble_s[0] == pytest.approx(3 / 16 * (time.forward_s + time.backward_s)[0])


def test_chunks_shorten_the_bubble_and_lengthen_the_transfers() -> None:
    plain, chunked = Layout(pp=4), Layout(pp=4, vpp=4, schedule="interleaved")
    time = estimate_of([plain, chunked], problem(global_batch_size=16)).time

    assert time.pipeline_bubble_s[1] == pytest.approx(time.pipeline_bubble_s[0] / 4)
    assert time.pipeline_transfer_s[1] == pytest.approx(time.pipeline_transfer_s[0] * 4)


def test_hidden_states_wait_for_every_transfer_both_ways() -> None:
    # pp 2 inside a node, 16 micro-batches: 2 * (16 + 1) messages of 2 * 4096 * 4096 bytes over 450e9 * 0.8 and 5 us
    time = estimate_of([Layout(pp=2)], problem(global_batch_size=16)).time

    assert time.pipeline_transfer_s[0] == pytest.approx(34 * (2 * 4096 * 4096 / 360e9 + 5e-6))


def test_the_head_is_only_what_makes_its_rank_slower_than_the_others() -> None:
    # 30 layers on 4 ranks are 7, 8, 8, 7: the head's rank has a layer less to make up for it
    even = estimate_of([Layout(pp=4)], problem(model=replace(llama_3_8b(), num_hidden_layers=32))).time.logits_s
    uneven = estimate_of([Layout(pp=4)], problem(model=replace(llama_3_8b(), num_hidden_layers=30))).time.logits_s

    assert 0 < uneven[0] < even[0]


def test_gradients_hide_behind_the_last_backward_pass_up_to_the_first_layers_share() -> None:
    # Llama-3 8B, dp 8 in one node: 2 * 7/8 * 4 bytes * 8.03e9 over 360e9 = 0.156 s and 14 hops of 5 us; the backward of
    # one sequence takes longer, so that 1/32 of it shows
    time = estimate_of([Layout(dp_replicate=8)], problem(global_batch_size=8)).time

    assert time.backward_s[0] > 0.157
    assert time.data_parallel_s[0] == pytest.approx((1.75 * 4 * 8_030_261_248 / 360e9 + 70e-6) / 32, rel=1e-3)


def test_weights_are_gathered_for_every_micro_batch_under_zero_stage_3() -> None:
    # two and eight micro-batches of one sequence on 8 nodes: what a pass cannot hide shows at each of them
    layout = Layout(dp_shard=64, zero_stage=3)
    few, many = (
        estimate_of([layout], problem(model=llama_3_70b(), nodes=8, global_batch_size=64 * m, sequence_length=512))
        .time.data_parallel_s[0]
        for m in (2, 8)
    )  # fmt: skip

    assert many == pytest.approx(4 * few)


def test_breadth_first_gathers_once_for_all_micro_batches() -> None:
    question = problem(model=llama_3_70b(), nodes=8, global_batch_size=16 * 16, sequence_length=512)
    each_pass = Layout(pp=4, vpp=2, dp_shard=16, zero_stage=3, schedule="interleaved")
    once = replace(each_pass, schedule="breadth-first")
    time = estimate_of([each_pass, once], question, only_copy_profile()).time

    assert time.data_parallel_s[1] < time.data_parallel_s[0] / 4


def test_a_tied_embedding_at_both_ends_is_reduced_between_them() -> None:
    # Llama-3.2 1B, pp 2, one data-parallel rank: 2 * 1/2 * 4 bytes * 128,256 * 2048 over 360e9 and 2 * 5 us
    time = estimate_of([Layout(pp=2)], problem(model=LLAMA_32_1B)).time

    assert time.data_parallel_s[0] == pytest.approx(4 * 128_256 * 2048 / 360e9 + 10e-6)


def test_the_update_moves_the_states_of_the_ranks_own_share() -> None:
    # 8.03e9 / 8 parameters; master and two moments of 4 bytes read and written, gradient of 4 read twice, weight of 2
    # written: 34 bytes, at 3.35e12 * 0.8 bytes a second
    time = estimate_of([Layout(dp_shard=8, zero_stage=1)], problem()).time

    assert time.optimizer_s[0] == pytest.approx(8_030_261_248 / 8 * 34 / (3.35e12 * 0.8))


@pytest.mark.parametrize("part", ["forward_s", "backward_s", "logits_s", "optimizer_s", "pipeline_bubble_s"])
def test_the_compute_factor_scales_compute(part: str) -> None:
    plain, slow = (
        estimate_of([Layout(pp=2)], problem(), factors=Factors(compute_time=factor)).time for factor in (1.0, 1.5)
    )

    assert getattr(slow, part)[0] == pytest.approx(1.5 * getattr(plain, part)[0])


def test_the_other_factors_scale_what_they_name() -> None:
    layouts = [Layout(tp=4, pp=2, sequence_parallel=True)]
    plain = estimate_of(layouts, problem())
    factors = Factors(communication_time=2.0, overhead_s=0.25, memory=1.1)
    scaled = estimate_of(layouts, problem(), factors=factors)

    assert scaled.time.tensor_parallel_s[0] == pytest.approx(2 * plain.time.tensor_parallel_s[0])
    assert scaled.time.pipeline_transfer_s[0] == pytest.approx(2 * plain.time.pipeline_transfer_s[0])
    assert scaled.time.forward_s[0] == plain.time.forward_s[0]
    assert scaled.time.overhead_s[0] == 0.25
    assert scaled.memory.activations_bytes[0] == pytest.approx(1.1 * plain.memory.activations_bytes[0])
    assert scaled.memory.outside_bytes[0] == plain.memory.outside_bytes[0]


def test_tensor_parallelism_across_nodes_is_far_slower_than_inside_one() -> None:
    question = problem(model=llama_3_70b(), nodes=2)
    inside, across = estimate_of(
        [Layout(tp=8, dp_replicate=2), Layout(tp=16)], replace(question, cluster=question.cluster)
    ).time.tensor_parallel_s

    # per micro-batch; the replicated layout runs half of them
    assert across / (2 * inside) > 1.05
    assert np.isfinite(across)
