from dataclasses import replace

import pytest

from autotune.space.optional_rules import (
    even_stages,
    fp8_tokens_multiple,
    kv_heads_divide_tp,
    micro_batches_fill_stages,
    runs_schedules,
)
from autotune.spec.layout import Layout
from autotune.spec.model import MlaSpec
from tests.examples import llama_3_70b, problem, tiny_model
from tests.space.rows import broken, codes, message


def test_kv_heads_that_tp_does_not_divide_are_refused_by_an_engine_that_cannot_copy_them():
    # 2 kv heads, 8 query heads
    question = problem(model=tiny_model(heads=8, kv_heads=2))
    rule = kv_heads_divide_tp(needs="mcore before 0.16 does not copy kv heads")

    got = message("tp-divides-kv-heads", Layout(tp=8), question, (rule,))

    assert got == (
        "mcore before 0.16 does not copy kv heads: tp=8 does not fit num_key_value_heads=2; tp can be 1 or 2"
    )


def test_an_engine_that_copies_kv_heads_takes_multiples_of_them():
    # 3 kv heads, 24 query heads: tp 1 and 3 divide, tp 6 copies each twice, tp 2, 4 and 8 do neither
    question = problem(model=tiny_model(heads=24, kv_heads=3))
    rule = kv_heads_divide_tp(needs="mcore 0.16", replicated_when_fewer=True)

    legal = [tp for tp in (1, 2, 3, 4, 6, 8) if not broken(Layout(tp=tp), question, (rule,))]

    assert legal == [1, 3, 6]
    assert message("tp-divides-kv-heads", Layout(tp=8), question, (rule,)).endswith("tp can be 1, 3 or 6")


def test_latent_attention_has_no_kv_heads_to_divide():
    mla = MlaSpec(q_lora_rank=None, kv_lora_rank=16, qk_nope_head_dim=8, qk_rope_head_dim=4, v_head_dim=8)
    question = problem(model=replace(tiny_model(heads=8, kv_heads=2), mla=mla))

    assert broken(Layout(tp=8), question, (kv_heads_divide_tp(needs="torchtitan"),)) == ()


def test_uneven_stages_name_what_would_be_trained_and_what_divides():
    # 80 layers, pp 16, 2 chunks: 32 stages of 2 layers train 64. With pp 16 vpp can be 1 or 5 (16, 80 divide 80);
    # with vpp 2 pp can be the divisors of 40 up to 16.
    question = problem(model=llama_3_70b(), nodes=2)
    layout = Layout(pp=16, vpp=2, schedule="interleaved")

    got = message("even-stages", layout, question, (even_stages(needs="Megatron-LM"),))

    assert got == (
        "Megatron-LM: 80 layers are not a multiple of pp·vpp = 16·2 = 32 stages; 2 each would train 64 layers; "
        "with pp=16 vpp can be 1 or 5, with vpp=2 pp can be 1, 2, 4, 5, 8 or 10"
    )


def test_30_layers_on_4_ranks_would_train_28():
    question = problem(model=tiny_model(layers=30))

    got = message("even-stages", Layout(pp=4), question, (even_stages(needs="Megatron-LM"),))

    assert "7 each would train 28 layers" in got
    assert got.endswith("with vpp=1 pp can be 1, 2, 3, 5 or 6")


def test_80_layers_divide_into_8_ranks_of_5_chunks():
    layout = Layout(pp=8, vpp=5, schedule="interleaved")

    assert broken(layout, problem(model=llama_3_70b()), (even_stages(needs="Megatron-LM"),)) == ()


@pytest.mark.parametrize(
    ("layers", "mtp_layers", "pp", "vpp"),
    [(126, 0, 8, 4), (126, 0, 8, 8), (126, 0, 16, 4), (94, 0, 4, 12), (94, 0, 8, 2), (94, 0, 8, 3), (61, 1, 16, 1)],
)
def test_shipped_recipes_divide_once_embedding_loss_and_mtp_count_as_layers(layers, mtp_layers, pp, vpp):
    # (126+2) % 32, 64, 64; (94+2) % 48, 16, 24; (61+3) % 16: NVIDIA's published Megatron-Bridge recipes
    question = problem(model=replace(tiny_model(layers=layers), mtp_layers=mtp_layers), nodes=2)
    layout = Layout(pp=pp, vpp=vpp, schedule="interleaved" if vpp > 1 else "1f1b")

    assert broken(layout, question, (even_stages(needs="Megatron-LM", spare_slots=2),)) == ()
    assert codes(layout, question, (even_stages(needs="Megatron-LM"),)) == ["even-stages"]


def test_fewer_micro_batches_than_stages_are_refused_before_they_hang():
    rule = micro_batches_fill_stages(needs="torchtitan hangs otherwise", schedules=("1f1b",))

    got = message("micro-batches-fill-stages", Layout(pp=8), problem(global_batch_size=4), (rule,))

    assert got.startswith("torchtitan hangs otherwise: schedule 1f1b needs at least pp = 8 micro-batches a step")
    assert broken(Layout(pp=4), problem(global_batch_size=4), (rule,)) == ()
    assert broken(Layout(pp=8, schedule="gpipe"), problem(global_batch_size=4), (rule,)) == ()


def test_stages_may_count_every_chunk():
    # pp 2 · vpp 4 = 8 stages, 4 micro-batches
    rule = micro_batches_fill_stages(needs="x", schedules=("interleaved",), per_chunk=True)
    layout = Layout(pp=2, vpp=4, schedule="interleaved")

    assert codes(layout, problem(global_batch_size=4), (rule,)) == ["micro-batches-fill-stages"]
    assert codes(layout, problem(global_batch_size=8), (rule,)) == []


def test_fp8_wants_a_multiple_of_16_tokens_on_a_rank():
    # cp 24: 184 = 16·11.5 tokens a rank. Two sequences: 368 = 16·23. cp 12: 368 again.
    fp8 = problem(nodes=3, sequence_length=24 * 184)
    fp8 = replace(fp8, workload=replace(fp8.workload, precision="fp8"))
    rule = fp8_tokens_multiple(needs="TransformerEngine")

    assert codes(Layout(cp=24), fp8, (rule,)) == ["fp8-tokens"]
    assert codes(Layout(cp=24, micro_batch_size=2), fp8, (rule,)) == []
    assert codes(Layout(cp=12), fp8, (rule,)) == []
    assert codes(Layout(cp=24), problem(nodes=3, sequence_length=24 * 184), (rule,)) == []


def test_a_schedule_that_the_engine_does_not_run_is_named_with_those_it_runs():
    rule = runs_schedules(("1f1b", "interleaved"), needs="Megatron-LM")

    got = message("schedule-of-engine", Layout(pp=2, vpp=2, schedule="zb-v"), problem(), (rule,))

    assert got == "Megatron-LM does not run schedule zb-v; it runs 1f1b or interleaved"
