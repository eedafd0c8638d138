"""One layer's compute and communication, on a machine with round rates."""

import numpy as np
import pytest

from autotune.cost.collectives import Network
from autotune.cost.kernels import Rates
from autotune.cost.layer_communication import LayerCommunication, layer_communication
from autotune.cost.layer_time import LayerTime, head_time, layer_time
from autotune.cost.parameters import LayerKind
from autotune.spec.layout import Layout, LayoutTable
from autotune.spec.model import ModelSpec, MoeSpec
from autotune.spec.workload import Problem
from tests.cost.profiles import figure, master_copy_profile
from tests.examples import llama_3_8b, problem, tiny_model

# 1e12 operations a second, memory and launches free
RATE = Rates(
    product_flops_per_s=1e12,
    attention_forward_flops_per_s=1e12,
    attention_backward_flops_per_s=1e12,
    memory_bytes_per_s=1e30,
    launch_s=0.0,
    wave_outputs=0.0,
    gradient_bytes=4,
)
NET = Network(domain_gpus=8, inner_bytes_per_s=1e9, inner_latency_s=0.0, outer_bytes_per_s=1e8, outer_latency_s=0.0)
DENSE, MIXTURE = LayerKind.DENSE, LayerKind.MIXTURE


def _time(layouts: list[Layout], question: Problem, kind: LayerKind = DENSE) -> LayerTime:
    return layer_time(LayoutTable.of(layouts), question, master_copy_profile(), RATE, kind)


def _communication(layouts: list[Layout], question: Problem, kind: LayerKind = DENSE) -> LayerCommunication:
    table = LayoutTable.of(layouts)
    return layer_communication(
        table, question, NET, kind, layer_time(table, question, master_copy_profile(), RATE, kind)
    )


def test_a_layers_operations_are_two_per_weight_and_token_and_causal_attention() -> None:
    # Llama-3 8B, 4096 tokens: 2 * 218,103,808 matrix weights * 4096 + 4 * 4096 wide heads * 2048 keys * 4096 tokens
    got = _time([Layout()], problem())
    products, attention = 2 * 218_103_808 * 4096, 4 * 4096 * 2048 * 4096

    assert got.forward_s[0] * 1e12 == pytest.approx(products + attention)
    assert got.input_gradient_s[0] * 1e12 == pytest.approx(products + 2.5 * attention)
    assert got.weight_gradient_s[0] * 1e12 == pytest.approx(products)


def test_tensor_and_context_parallelism_divide_the_work() -> None:
    got = _time([Layout(), Layout(tp=4), Layout(cp=4), Layout(micro_batch_size=4)], problem())

    assert got.forward_s / got.forward_s[0] == pytest.approx([1, 0.25, 0.25, 4])


def test_full_recomputation_runs_the_forward_pass_again_and_selective_what_the_engine_lists() -> None:
    full, selective = Layout(recompute="full"), Layout(recompute="selective")
    attention_only = master_copy_profile(selective_recompute=("core_attention",))
    got = layer_time(LayoutTable.of([full, selective, Layout()]), problem(), attention_only, RATE, DENSE)

    assert got.recompute_s[0] == got.forward_s[0]
    assert got.recompute_s[1] == got.attention_forward_s[1]
    assert got.recompute_s[2] == 0


def test_routed_experts_work_on_top_k_copies_of_each_token() -> None:
    # hidden 32, expert width 16, 3 matrices, top 2: 2 * 3 * 32 * 16 * 2 operations a token more than top 0 would have;
    # top 4 doubles that
    def forward(top_k: int) -> float:
        moe = MoeSpec(num_experts=8, experts_per_token=top_k, expert_intermediate_size=16)
        return float(_time([Layout()], problem(model=tiny_model(moe=moe)), MIXTURE).forward_s[0])

    assert (forward(4) - forward(2)) * 1e12 == pytest.approx(2 * 3 * 32 * 16 * 2 * 4096)


def test_the_head_is_three_products_over_the_vocabulary() -> None:
    # 3 * 2 * 4096 hidden * 128,256 words * 4096 tokens
    got = head_time(
        LayoutTable.of([Layout()]), problem(), master_copy_profile(logits_bytes_per_element=figure(0)), RATE
    )

    assert got[0] * 1e12 == pytest.approx(3 * 2 * 4096 * 128_256 * 4096)


def test_a_dense_layer_reduces_its_hidden_states_twice_each_way() -> None:
    # tp 4: each all-reduce moves 2 * 3/4 of 2 bytes * 4096 hidden * 4096 tokens, two forward and two backward
    size = 2 * 4096 * 4096
    got = _communication([Layout(tp=4), Layout(tp=4, recompute="full"), Layout()], problem())

    assert got.tensor_forward_s * 1e9 == pytest.approx([2 * 1.5 * size, 2 * 1.5 * size, 0])
    # full recomputation has two more, in all 6 for 4
    assert got.tensor_backward_s * 1e9 == pytest.approx([2 * 1.5 * size, 4 * 1.5 * size, 0])


def test_sequence_parallelism_moves_the_same_bytes() -> None:
    got = _communication([Layout(tp=4), Layout(tp=4, sequence_parallel=True)], problem())

    assert got.tensor_forward_s[0] == got.tensor_forward_s[1]


def test_keys_and_values_round_the_ring_are_hidden_behind_attention() -> None:
    # cp 4: each rank receives 3 blocks of 2 bytes * 2 * 1024 wide keys and values * 1024 tokens = 12.58 MB: 12.58 ms;
    # attention of 1024 queries over 2048 mean keys of 4096 wide heads takes 4 * 4096 * 2048 * 1024 / 1e12 = 34.4 ms
    hidden = _communication([Layout(cp=4)], problem())
    assert hidden.context_forward_s[0] == 0

    # one kv head a query head: 16384 wide instead of 4096, 4 times the bytes, 50.33 ms for 34.36 ms
    many_heads = ModelSpec(
        name="mha", architecture="llama", hidden_size=4096, num_hidden_layers=32, num_attention_heads=32,
        num_key_value_heads=32, head_dim=128, intermediate_size=14336, vocab_size=128256,
    )  # fmt: skip
    shown = _communication([Layout(cp=4)], problem(model=many_heads))
    assert shown.context_forward_s[0] == pytest.approx(50.331648e-3 - 34.359738e-3)


def test_tokens_travel_to_their_experts_and_back() -> None:
    # 4096 tokens * top 2 * 32 hidden * 2 bytes = 524,288 bytes; 3/4 of them leave a rank, there and back
    moe = MoeSpec(num_experts=8, experts_per_token=2, expert_intermediate_size=16)
    got = _communication([Layout(ep=4), Layout(ep=4, recompute="full")], problem(model=tiny_model(moe=moe)), MIXTURE)

    assert got.expert_forward_s * 1e9 == pytest.approx([2 * 0.75 * 524_288] * 2)
    assert got.expert_backward_s * 1e9 == pytest.approx([2 * 0.75 * 524_288, 4 * 0.75 * 524_288])


def test_experts_beyond_the_domain_use_the_slow_link() -> None:
    moe = MoeSpec(num_experts=16, experts_per_token=2, expert_intermediate_size=16)
    inside, outside = _communication(
        [Layout(ep=8), Layout(ep=16)], problem(model=tiny_model(moe=moe)), MIXTURE
    ).expert_forward_s

    # 7/8 over 1e9 bytes/s against 8/16 over 1e8 bytes/s
    assert outside / inside == pytest.approx((0.5 / 1e8) / (0.875 / 1e9))


def test_a_dense_layer_of_a_mixture_has_no_expert_traffic() -> None:
    got = _communication([Layout(tp=2)], problem(model=llama_3_8b()))

    assert np.all(got.expert_forward_s == 0)
