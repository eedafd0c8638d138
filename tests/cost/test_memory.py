from dataclasses import replace

import numpy as np
import pytest

from autotune.spec.layout import Layout
from tests.cost.profiles import estimate_of, figure, master_copy_profile
from tests.examples import GIB, h100_cluster, llama_3_8b, problem


def test_the_first_rank_of_1f1b_is_the_fullest_as_it_holds_most_micro_batches() -> None:
    got = estimate_of([Layout(pp=4)], problem())

    assert got.fullest_stage.tolist() == [0]


def test_the_last_rank_is_the_fullest_where_logits_outweigh_the_micro_batches_in_flight() -> None:
    # two ranks, full recomputation: little in flight, and 64 bytes for each of 4096 * 128,256 logits: 31 GiB
    profile = master_copy_profile(logits_bytes_per_element=figure(64))
    got = estimate_of([Layout(pp=2, recompute="full")], problem(), profile)

    assert got.fullest_stage.tolist() == [1]
    assert got.memory.logits_bytes[0] == 64 * 4096 * 128_256


def test_a_second_rank_can_be_the_fullest() -> None:
    # 126 layers on 8 ranks of 4 chunks: 15, 16, …, 15; a small vocabulary, so that the layer outweighs the embedding;
    # breadth-first holds all micro-batches everywhere
    model = replace(llama_3_8b(), num_hidden_layers=126, vocab_size=1024)
    got = estimate_of(
        [Layout(pp=8, vpp=4, schedule="breadth-first")], problem(model=model, nodes=1, global_batch_size=8)
    )

    assert got.fullest_stage.tolist() == [1]


def test_interleaving_holds_more_than_1f1b_and_zb_h2_nearly_twice_as_much() -> None:
    layouts = [
        Layout(pp=4),
        Layout(pp=4, vpp=2, schedule="interleaved"),
        Layout(pp=4, schedule="zb-h2"),
    ]
    stored = estimate_of(layouts, problem(global_batch_size=64)).memory.activations_bytes

    # 4, (2 * 3 + 4 + 1) / 2 = 5.5 and 7 micro-batches of 8 layers, and beside them the working gradients of a layer:
    # gate and up 2 * 2 * 14336 and input 2 * 4096 bytes for each of 4096 tokens. ZB-H2's fullest rank is the last,
    # where the logits' room is larger than they are.
    working = 4096 * (4 * 14336 + 2 * 4096)
    one = (stored[0] - working) / 4
    assert stored / one == pytest.approx([4 + working / one, 5.5 + working / one, 7])


def test_logits_and_a_layers_backward_are_two_moments_and_the_larger_one_counts() -> None:
    small, large = (
        estimate_of(
            [Layout(tp=2, recompute="full")], problem(), master_copy_profile(logits_bytes_per_element=figure(b))
        )
        for b in (0.001, 1000)
    )

    # small logits: the rebuilt layer shows whole; large ones leave room for it
    assert small.memory.recompute_bytes[0] > 0
    assert large.memory.recompute_bytes[0] == 0
    assert large.memory.activations_bytes[0] < small.memory.activations_bytes[0]


def test_outside_memory_grows_with_the_peers_and_is_not_scaled() -> None:
    # tp, dp: two rings of two peers each; 2e9 + 4 * 1e7
    got = estimate_of([Layout(tp=2, dp_replicate=4)], problem())

    assert got.memory.outside_bytes[0] == 2e9 + 4 * 1e7


def test_an_expert_all_to_all_keeps_a_buffer_for_every_other_rank() -> None:
    one, eight = estimate_of([Layout(dp_replicate=8), Layout(dp_replicate=8, ep=8)], problem()).memory.outside_bytes

    assert eight - one == 7 * 1e7


def test_the_allocators_slack_is_a_share_of_the_frameworks_bytes() -> None:
    tight = estimate_of([Layout()], problem()).memory
    loose = estimate_of([Layout()], problem(), master_copy_profile(allocator_slack=figure(0.05))).memory

    assert loose.peak_bytes - tight.peak_bytes == pytest.approx(0.05 * (tight.peak_bytes - tight.outside_bytes))


def test_each_process_of_a_node_stages_its_weights_in_host_memory() -> None:
    # Llama-3 8B, tp 8, bf16: 2 bytes, 8 processes; a replicated norm is held by each
    got = estimate_of([Layout(tp=8), Layout(tp=2)], problem())

    assert got.host_bytes[0] == 8 * got.memory.weights_bytes[0]
    assert got.host_bytes[1] == 2 * got.memory.weights_bytes[1]


def test_on_cpus_the_processes_share_the_nodes_ram() -> None:
    question = problem()
    cluster = h100_cluster(1, 4)
    local = replace(question, cluster=replace(cluster, gpu=replace(cluster.gpu, device="cpu")))
    got = estimate_of([Layout(dp_replicate=4)], local)

    assert got.host_bytes[0] == 4 * got.memory.peak_bytes[0]


def test_the_memory_of_a_published_run_is_met() -> None:
    """Llama-3 70B cut to 12 layers under Megatron-LM, exact allocator peaks.

    SimuMax's B200 table (docs/b200/b200_release_v1.2_summary.json): pp 2, dp 4; tp 2, dp 4; tp 4, dp 2; tp 8; sequence
    4096, micro-batch 1, distributed optimizer, fused cross entropy.
    """
    model = replace(
        llama_3_8b(), hidden_size=8192, num_hidden_layers=12, num_attention_heads=64, intermediate_size=28672
    )
    layouts = [
        Layout(pp=2, dp_shard=4, zero_stage=1),
        Layout(tp=2, dp_shard=4, zero_stage=1, sequence_parallel=True),
        Layout(tp=4, dp_shard=2, zero_stage=1, sequence_parallel=True),
        Layout(tp=8, sequence_parallel=True),
    ]
    bare = master_copy_profile(
        logits_bytes_per_element=figure(4), outside_bytes=figure(0), outside_per_peer_bytes=figure(0)
    )
    got = estimate_of(layouts, problem(model=model, global_batch_size=16), bare).memory.peak_bytes / GIB

    assert np.abs(got / [66.55, 60.68, 39.07, 28.29] - 1).max() < 0.03
