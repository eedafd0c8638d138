from dataclasses import replace

import numpy as np
import pytest

from autotune.cost.profile import MemoryProfile
from autotune.cost.stages import Place, stages
from autotune.cost.states import StateBytes, rank_parameters, shards, state_bytes
from autotune.spec.layout import Layout, LayoutTable
from autotune.spec.model import ModelSpec
from autotune.spec.workload import Problem
from tests.cost.architectures import LLAMA_32_1B, QWEN3_235B
from tests.cost.profiles import figure, master_copy_profile, only_copy_profile
from tests.examples import llama_3_8b, problem

LLAMA_PARAMETERS = 8_030_261_248  # 128,256 words are a multiple of 128, so that nothing is padded at tp 1


def _states(layout: Layout, profile: MemoryProfile, question: Problem) -> StateBytes:
    table = LayoutTable.of([layout])
    held = stages(table, question.model)
    return state_bytes(table, question, profile, rank_parameters(table, question.model, profile, held), held.copies)


def _per_parameter(layout: Layout, profile: MemoryProfile) -> float:
    got = _states(layout, profile, problem())
    kept = got.weights_bytes + got.gradients_bytes + got.optimizer_bytes
    return float(kept[Place.FIRST, 0]) / LLAMA_PARAMETERS


@pytest.mark.parametrize(("ranks", "expected"), [(1, 18.0), (8, 7.5), (48, 6.25)])
def test_the_distributed_optimizer_holds_6_bytes_and_12_over_its_ranks(ranks: int, expected: float) -> None:
    # NVIDIA/Megatron-LM#654: bf16 weights 2, fp32 gradients 4, fp32 master and two moments 12: 18, or 6 + 12/DP
    layout = Layout(dp_shard=ranks, zero_stage=1 if ranks > 1 else 0)

    assert _per_parameter(layout, master_copy_profile()) == pytest.approx(expected)


@pytest.mark.parametrize(("stage", "expected"), [(1, 2 + 4 + 12 / 8), (2, 2 + 4 / 8 + 12 / 8), (3, 18 / 8)])
def test_zero_stages_shard_optimizer_then_gradients_then_weights(stage: int, expected: float) -> None:
    assert _per_parameter(Layout(dp_shard=8, zero_stage=stage), master_copy_profile()) == pytest.approx(expected)


def test_an_only_copy_in_fp32_makes_16_bytes_over_the_ranks() -> None:
    # weights, gradients and two moments of 4 bytes each, all sharded: torchtitan's FSDP2
    assert _per_parameter(Layout(dp_shard=8, zero_stage=3), only_copy_profile()) == pytest.approx(16 / 8)


def test_an_only_copy_is_gathered_whole_when_weights_stay_between_passes() -> None:
    # zero_stage 2: the fp32 copy is sharded, and a bf16 copy of everything lives through the step
    got = _states(Layout(dp_shard=8, zero_stage=2), only_copy_profile(), problem())

    assert got.weights_bytes[0, 0] == pytest.approx(4 * LLAMA_PARAMETERS / 8)
    assert got.gathered_weights_bytes[0, 0] == pytest.approx(2 * LLAMA_PARAMETERS)


def test_two_layers_or_a_layer_and_the_head_are_gathered_at_once() -> None:
    # Llama-3 8B: a layer has 218,112,000 parameters, the head 525,336,576: 2 * (218,112,000 + 525,336,576)
    got = _states(Layout(dp_shard=8, zero_stage=3), only_copy_profile(), problem())

    assert got.gathered_weights_bytes[Place.FIRST, 0] == pytest.approx(2 * (218_112_000 + 525_336_576))


def test_states_shard_over_context_parallel_ranks_where_the_engine_does() -> None:
    table = LayoutTable.of([Layout(dp_shard=4, cp=2, zero_stage=1)])

    assert shards(table, master_copy_profile()).own.tolist() == [8]
    assert shards(table, master_copy_profile(state_shards_over_cp=False)).own.tolist() == [4]


def test_experts_shard_over_the_ranks_that_hold_the_same_experts() -> None:
    # tp 2 * cp 2 * dp 8 = 32 ranks; ep 4 and etp 2 are 8 of them, so 4 hold the same experts
    table = LayoutTable.of([Layout(tp=2, cp=2, dp_shard=8, ep=4, etp=2, zero_stage=1)])

    assert shards(table, master_copy_profile()).expert.tolist() == [4]


def test_a_tied_embedding_is_held_once_alone_and_twice_in_a_pipeline() -> None:
    # Llama-3.2 1B: 128,256 * 2048 = 262,668,288 parameters in the tied table
    def per_place(layout: Layout) -> np.ndarray:
        table = LayoutTable.of([layout])
        model: ModelSpec = LLAMA_32_1B
        return rank_parameters(table, model, master_copy_profile(), stages(table, model)).own[:, 0]

    alone, piped = per_place(Layout()), per_place(Layout(pp=2))
    v_shaped = per_place(Layout(pp=2, vpp=2, schedule="zb-v"))

    assert alone[Place.FIRST] == 1_235_814_400
    assert piped[Place.FIRST] + piped[Place.LAST] == 1_235_814_400 + 262_668_288
    assert v_shaped[Place.FIRST] + v_shaped[Place.LAST] == 1_235_814_400


def test_stages_of_a_pipeline_hold_the_whole_model_between_them() -> None:
    table = LayoutTable.of([Layout(pp=2)])
    params = rank_parameters(table, llama_3_8b(), master_copy_profile(), stages(table, llama_3_8b()))

    assert params.own[Place.FIRST, 0] + params.own[Place.LAST, 0] == LLAMA_PARAMETERS


def test_two_copies_of_the_weights_double_weights_and_gradients_but_not_sharded_optimizer_states() -> None:
    plain = _states(Layout(pp=4, dp_shard=2, zero_stage=1), master_copy_profile(), problem())
    twice = _states(Layout(pp=4, dp_shard=2, zero_stage=1, schedule="dualpipe"), master_copy_profile(), problem())

    # the second rank has 8 layers and neither embedding nor head
    assert twice.weights_bytes[Place.SECOND, 0] == 2 * plain.weights_bytes[Place.SECOND, 0]
    assert twice.optimizer_bytes[Place.SECOND, 0] == plain.optimizer_bytes[Place.SECOND, 0]


def test_experts_are_divided_by_ep_and_etp_and_never_by_tp() -> None:
    table = LayoutTable.of([Layout(tp=4, ep=4), Layout(tp=4, ep=4, etp=4)])
    params = rank_parameters(table, QWEN3_235B, master_copy_profile(), stages(table, QWEN3_235B))
    # 94 layers * 128 experts * 3 * 4096 * 1536
    routed = 94 * 128 * 3 * 4096 * 1536

    assert params.expert[Place.FIRST].tolist() == [routed / 4, routed / 16]


def test_a_reduction_bucket_is_held_only_where_gradients_are_reduced() -> None:
    alone = _states(Layout(tp=8), master_copy_profile(gradient_bucket_bytes=figure(7)), problem())
    many = _states(Layout(tp=4, dp_replicate=2), master_copy_profile(gradient_bucket_bytes=figure(7)), problem())

    assert (alone.buffers_bytes[0, 0], many.buffers_bytes[0, 0]) == (0, 7)


def test_a_pipeline_that_accumulates_holds_whole_gradients_until_the_last_micro_batch() -> None:
    # FSDP2 under torch.distributed.pipelining reduces once a step, so zero_stage 2 saves no gradients there
    profile = replace(only_copy_profile(), pipeline_accumulates_gradients=True)
    in_pipeline, alone = Layout(pp=2, dp_shard=4, zero_stage=2), Layout(dp_shard=8, zero_stage=2)

    def gradients_bytes(layout: Layout, profile: MemoryProfile) -> float:
        return float(_states(layout, profile, problem()).gradients_bytes[Place.FIRST, 0])

    assert gradients_bytes(in_pipeline, profile) == pytest.approx(4 * gradients_bytes(in_pipeline, only_copy_profile()))
    assert gradients_bytes(alone, profile) == pytest.approx(gradients_bytes(alone, only_copy_profile()))


def test_a_split_backward_keeps_the_weights_of_its_whole_stage_gathered() -> None:
    profile = replace(only_copy_profile(), split_backward_keeps_gathered=True)

    def gathered_bytes(schedule: str) -> float:
        layout = Layout(pp=2, vpp=2, dp_shard=4, zero_stage=3, schedule=schedule)
        return float(_states(layout, profile, problem()).gathered_weights_bytes[:, 0].max())

    # in bf16, of 32 layers on two ranks: 16 · 218.1 M parameters · 2 bytes = 6.98 GB and more with embedding or head
    assert gathered_bytes("zb-v") > 6.98e9
    # two layers or one and the head: (218.1 M + 525.3 M) · 2 bytes
    assert gathered_bytes("interleaved") == pytest.approx(2 * (218.1e6 + 525.3e6), rel=1e-3)
