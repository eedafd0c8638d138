"""What the worker cannot do is said in sentences, before anything is started."""

from dataclasses import replace

import pytest

from autotune.spec.layout import Layout
from autotune.spec.model import MlaSpec, MoeSpec
from autotune.spec.outcome import TrialSpec
from autotune.spec.workload import WorkloadSpec
from autotune.worker.support import not_this_trial, unsupported
from tests.examples import tiny_model

WORKLOAD = WorkloadSpec(sequence_length=16, global_batch_size=8, precision="fp32")
MIXTURE = MoeSpec(num_experts=4, experts_per_token=2, expert_intermediate_size=16)
LATENT = MlaSpec(q_lora_rank=None, kv_lora_rank=8, qk_nope_head_dim=8, qk_rope_head_dim=4, v_head_dim=8)

GOOD_LAYOUTS = (
    "mbs1",
    "tp2-sp-mbs1",
    "cp2-mbs1",
    "pp4-mbs1",
    "pp2-vpp2-mbs1-zb-v-recompute-selective",
    "pp2-vpp2-mbs1-dualpipev",
    "shard4-z3-mbs1",
    "rep2-shard2-z2-mbs2-recompute-full",
)

BAD_LAYOUTS = {
    "shard2-z1-mbs1": "zero_stage=1: FSDP2",
    "shard2-mbs1": "zero_stage=0 does not go with dp_shard=2",
    "tp4-mbs1": "tp=4 does not divide num_key_value_heads=2",
    "sp-mbs1": "sequence_parallel needs tp > 1",
    "cp3-mbs1": "sequence length 16 is not a multiple of 2·cp=6",
    "mbs3": "global batch 8 is not a multiple of micro_batch_size·dp=3",
    "pp2-mbs1-zb-h1": "schedule zb-h1 is not in torch.distributed.pipelining",
    "pp2-mbs8": "schedule 1f1b needs at least pp=2 micro-batches, but there are 1",
    "pp2-vpp2-mbs4-dualpipev": "schedule dualpipev needs at least 2·pp=4 micro-batches, but there are 2",
    "pp2-vpp3-mbs1-interleaved": "pp·vpp=6 stages, but only 4 layers",
    "pp2-mbs1-interleaved": "schedule interleaved needs vpp > 1",
    "pp2-vpp2-mbs1": "schedule 1f1b has 1 chunks on each rank, but vpp=2",
    "vpp2-mbs1": "vpp=2 needs pp > 1",
    "ep2-mbs1": "there are no experts",
}

BAD_MODELS = {
    "mixture of experts": tiny_model(moe=MIXTURE),
    "latent attention": replace(tiny_model(), mla=LATENT),
    "multi-token prediction": replace(tiny_model(), mtp_layers=1),
    "attention sinks": replace(tiny_model(), attention_sinks=True),
    "sliding window of 8": replace(tiny_model(), sliding_window=8, sliding_window_layers=2),
    "RMSNorm with a bias": replace(tiny_model(), norm_bias=True),
    "norms_per_layer=3": replace(tiny_model(), norms_per_layer=3),
    "head_dim=9": replace(tiny_model(), head_dim=9),
    "learned_positions=8": replace(tiny_model(), learned_positions=8),
}


@pytest.mark.parametrize("key", GOOD_LAYOUTS)
def test_what_it_can_do_has_no_reason_against_it(key):
    assert unsupported(Layout.from_key(key), tiny_model(), WORKLOAD, "cpu") == []


@pytest.mark.parametrize("key", BAD_LAYOUTS)
def test_a_layout_it_cannot_run_is_refused_with_its_reason(key):
    (reason,) = unsupported(Layout.from_key(key), tiny_model(), WORKLOAD, "cpu")

    assert BAD_LAYOUTS[key] in reason


@pytest.mark.parametrize("name", BAD_MODELS)
def test_a_model_it_cannot_build_is_refused_with_its_reason(name):
    (reason,) = unsupported(Layout(), BAD_MODELS[name], WORKLOAD, "cpu")

    assert name.split()[0] in reason


def test_all_reasons_are_given_at_once():
    layout = Layout(tp=4, dp_shard=2, zero_stage=1)
    reasons = unsupported(layout, tiny_model(moe=MIXTURE), replace(WORKLOAD, precision="fp8"), "cpu")

    assert len(reasons) == 4, reasons


def test_a_window_that_is_longer_than_the_sequence_changes_nothing():
    model = replace(tiny_model(), sliding_window=4096, sliding_window_layers=4)

    assert unsupported(Layout(), model, WORKLOAD, "cpu") == []


def test_interleaved_micro_batches_must_make_equal_rounds():
    # 5 micro-batches on pp 2 are 2 rounds, of 2.5
    workload = replace(WORKLOAD, global_batch_size=5)
    layout = Layout(pp=2, vpp=2, schedule="interleaved")

    (reason,) = unsupported(layout, tiny_model(), workload, "cpu")

    assert "5 do not make 2" in reason


def test_the_number_of_processes_must_be_the_layouts():
    spec = TrialSpec(layout=Layout(tp=2), model=tiny_model(), workload=WORKLOAD, device="cpu", processes_per_node=4)

    assert not_this_trial(spec) == ["the layout is for 2 processes, but 4 were asked for"]
