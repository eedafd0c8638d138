import numpy as np
import pytest

from autotune.cost.activations import layer_activations, logits_bytes, saved_tensors
from autotune.cost.parameters import LayerKind
from autotune.cost.tensors import tokens
from autotune.spec.layout import Layout, LayoutTable
from autotune.spec.model import ModelSpec, MoeSpec
from autotune.spec.workload import Problem, WorkloadSpec
from tests.cost.profiles import figure, master_copy_profile, only_copy_profile
from tests.examples import h100_cluster, llama_3_8b, problem, tiny_model

DENSE, MIXTURE = LayerKind.DENSE, LayerKind.MIXTURE


def _gpt() -> ModelSpec:
    """A plain GPT: hidden 1024, 16 heads, ffn 4096, not gated, no grouped heads."""
    return ModelSpec(
        name="gpt",
        architecture="gpt",
        hidden_size=1024,
        num_hidden_layers=2,
        num_attention_heads=16,
        num_key_value_heads=16,
        head_dim=64,
        intermediate_size=4096,
        vocab_size=1024,
        gated_mlp=False,
    )


def _question(model: ModelSpec, sequence_length: int, *, attention: str = "flash") -> Problem:
    workload = WorkloadSpec(
        sequence_length=sequence_length,
        global_batch_size=8,
        attention=attention,  # type: ignore[arg-type]
    )
    return Problem(model=model, cluster=h100_cluster(1, 8), workload=workload)


def _stored(model: ModelSpec, layout: Layout, *, attention: str = "flash", kind: LayerKind = DENSE) -> float:
    question = _question(model, 1024, attention=attention)
    return float(layer_activations(LayoutTable.of([layout]), question, master_copy_profile(), kind).stored_bytes[0])


def test_a_plain_layer_holds_what_korthikanti_counts_without_dropout() -> None:
    # Per token and hidden value, bf16: input, both norm outputs, second norm's input: 4 * 2 = 8; q, k, v and attention
    # output: 4 * 2 = 8; 4h before and after GELU: 2 * 4 * 2 = 16. 32 = 34 less two dropout masks of one byte.
    # log-sum-exp of the fused kernel: 4 bytes * 16 heads.
    assert _stored(_gpt(), Layout()) == 1024 * (32 * 1024 + 4 * 16)


def test_tensor_parallelism_divides_the_inner_tensors_and_sequence_parallelism_the_rest() -> None:
    # tp 4: 8 + 24/4 = 14 per token and hidden value, 16 heads / 4; with sequence parallelism (8 + 24) / 4 = 8.
    assert _stored(_gpt(), Layout(tp=4)) == 1024 * (14 * 1024 + 4 * 4)
    assert _stored(_gpt(), Layout(tp=4, sequence_parallel=True)) == 1024 * (8 * 1024 + 4 * 4)


def test_unfused_attention_holds_its_scores() -> None:
    # softmax output: 2 bytes * 16 heads * 1024 queries * 1024 keys
    fused, unfused = _stored(_gpt(), Layout()), _stored(_gpt(), Layout(), attention="unfused")

    assert unfused - fused == 2 * 16 * 1024 * 1024 - 4 * 16 * 1024


def test_full_recomputation_keeps_a_layers_input_alone() -> None:
    # 2 bytes * 1024 hidden * 1024 tokens
    assert _stored(_gpt(), Layout(recompute="full")) == 2 * 1024 * 1024


def test_selective_recomputation_drops_what_the_engine_recomputes() -> None:
    # norm outputs 2 * 2 * 1024, GELU output 2 * 4096 per token, no scores with a fused kernel
    everything, selective = _stored(_gpt(), Layout()), _stored(_gpt(), Layout(recompute="selective"))

    assert everything - selective == 1024 * (4 * 1024 + 2 * 4096)


def test_a_gated_layer_holds_gate_up_and_product_and_unfused_also_the_activated_gate() -> None:
    # Llama-3 8B, 4096 tokens, ffn 14336, bf16: 3 or 4 tensors
    table = LayoutTable.of([Layout()])
    fused = saved_tensors(table, problem(), master_copy_profile(), DENSE)
    unfused = saved_tensors(table, problem(), only_copy_profile(), DENSE)

    assert (fused.mlp_projected + fused.mlp_activated)[0] == 3 * 2 * 14336 * 4096
    assert (unfused.mlp_projected + unfused.mlp_activated)[0] == 4 * 2 * 14336 * 4096


def test_context_parallelism_and_micro_batch_are_interchangeable() -> None:
    # NVIDIA/Megatron-LM#7220: CP2 with micro-batch 4 peaks like CP1 with micro-batch 2
    assert _stored(_gpt(), Layout(cp=2, micro_batch_size=4)) == _stored(_gpt(), Layout(micro_batch_size=2))


def test_grouped_heads_are_held_once_for_each_rank_that_needs_them() -> None:
    # tiny: 2 kv heads of 8; tp 4: one query head and one kv head a rank: (8 + 8 + 8) values of 2 bytes a token
    saved = saved_tensors(LayoutTable.of([Layout(tp=4)]), _question(tiny_model(), 16), master_copy_profile(), DENSE)

    assert saved.attention_inputs[0] == 2 * 24 * 16


def _mixture(top_k: int) -> ModelSpec:
    return tiny_model(moe=MoeSpec(num_experts=8, experts_per_token=top_k, expert_intermediate_size=16))


def test_expert_parallelism_exchanges_tokens_and_removes_none() -> None:
    one = _stored(_mixture(2), Layout(), kind=MIXTURE)
    eight = _stored(_mixture(2), Layout(ep=8), kind=MIXTURE)

    assert one == eight


def test_top_k_multiplies_routed_activations() -> None:
    # deepspeedai/DeepSpeed#3535: top-2 doubles them. Per copy of a token: input 2 * 32, gate, up, product 3 * 2 * 16.
    one, two = _stored(_mixture(1), Layout(), kind=MIXTURE), _stored(_mixture(2), Layout(), kind=MIXTURE)

    assert two - one == 1024 * (2 * 32 + 3 * 2 * 16)


def test_each_tensor_rank_routes_its_part_of_the_sequence() -> None:
    # 1024 tokens, top 2, tp 4: 512 copies a rank; with etp 4 the four ranks see all 2048, as they do without sequence
    # parallelism
    layouts = [
        Layout(tp=4, sequence_parallel=True),
        Layout(tp=4, sequence_parallel=True, etp=4),
        Layout(tp=4, etp=4),
    ]

    assert tokens(LayoutTable.of(layouts), _question(_mixture(2), 1024)).routed.tolist() == [512, 2048, 2048]


def test_logits_are_held_as_the_profile_says() -> None:
    # karpathy/nanochat#443: 32 sequences of 2048 over 65,536 words in bf16 are 8 GiB
    model = ModelSpec(
        name="d20", architecture="gpt", hidden_size=1280, num_hidden_layers=20, num_attention_heads=10,
        num_key_value_heads=10, head_dim=128, intermediate_size=5120, vocab_size=65536,
    )  # fmt: skip
    table = LayoutTable.of([Layout(micro_batch_size=32), Layout(micro_batch_size=32, tp=2)])
    once = master_copy_profile(logits_bytes_per_element=figure(2))
    whole = master_copy_profile(logits_bytes_per_element=figure(2), vocab_parallel_logits=False)

    assert (logits_bytes(table, _question(model, 2048), once) / 2**30).tolist() == [8.0, 4.0]
    assert (logits_bytes(table, _question(model, 2048), whole) / 2**30).tolist() == [8.0, 8.0]


@pytest.mark.parametrize("recompute", ["none", "selective", "full"])
def test_what_is_not_stored_is_rebuilt(recompute: str) -> None:
    table = LayoutTable.of([Layout(), Layout(recompute=recompute)])
    got = layer_activations(table, problem(model=llama_3_8b()), master_copy_profile(), DENSE)
    whole = got.stored_bytes + got.rebuilt_bytes

    assert np.isclose(whole[0], whole[1])
