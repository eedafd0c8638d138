"""Megatron-LM: its own rules by hand, and flags as its parser wants them."""

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from autotune.engines.megatron_flags import layout_flags, model_flags, workload_flags
from autotune.engines.megatron_lm import MEGATRON_LM
from autotune.engines.protocol import Prediction
from autotune.space.rules import broken_rules
from autotune.spec.layout import Layout, LayoutTable
from autotune.spec.model import MlaSpec, ModelSpec, MoeSpec
from autotune.spec.workload import Problem
from autotune.testing import EngineContract
from tests.examples import GIB, llama_3_8b, llama_3_70b, problem, qwen3_30b_a3b

PREDICTION = Prediction(
    step_time_s=1.5, peak_memory_bytes=60 * GIB, limit_bytes=79 * GIB, basis="datasheet", command="autotune export run"
)


def with_workload(question: Problem, **changes: object) -> Problem:
    return replace(question, workload=replace(question.workload, **changes))


def with_model(question: Problem, **changes: object) -> Problem:
    return replace(question, model=replace(question.model, **changes))


def deepseek_v3() -> ModelSpec:
    """deepseek-ai/DeepSeek-V3 config.json, as far as flags go."""
    return ModelSpec(
        name="deepseek-v3",
        architecture="DeepseekV3ForCausalLM",
        hidden_size=7168,
        num_hidden_layers=61,
        num_attention_heads=128,
        num_key_value_heads=128,
        head_dim=192,
        intermediate_size=18432,
        vocab_size=129280,
        moe=MoeSpec(
            num_experts=256,
            experts_per_token=8,
            expert_intermediate_size=2048,
            shared_intermediate_size=2048,
            router_bias=True,
            dense_layers=3,
        ),
        mla=MlaSpec(q_lora_rank=1536, kv_lora_rank=512, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128),
        mtp_layers=1,
    )


class TestMegatronLmContract(EngineContract):
    def engine(self):
        return MEGATRON_LM

    def variations(self):
        one = problem()
        two = problem(nodes=2)
        experts = problem(model=qwen3_30b_a3b())
        plain = Layout(tp=2, dp_replicate=4)
        return {
            "tp": (one, plain, Layout(tp=4, dp_replicate=2)),
            "pp": (one, Layout(tp=2, pp=2, dp_replicate=2), Layout(tp=2, pp=4)),
            "vpp": (
                one,
                Layout(pp=2, vpp=2, dp_replicate=4, schedule="interleaved"),
                Layout(pp=2, vpp=4, dp_replicate=4, schedule="interleaved"),
            ),
            "dp_replicate": (two, Layout(dp_replicate=2, dp_shard=8, zero_stage=1), Layout(dp_shard=16, zero_stage=1)),
            "dp_shard": (one, Layout(dp_shard=8, zero_stage=1), Layout(dp_shard=4, zero_stage=1)),
            "cp": (one, Layout(cp=2, dp_replicate=4), Layout(cp=4, dp_replicate=2)),
            "ep": (experts, Layout(ep=2, dp_replicate=8), Layout(ep=4, dp_replicate=8)),
            "etp": (experts, Layout(ep=2, etp=1, dp_replicate=8), Layout(ep=2, etp=2, dp_replicate=8)),
            "zero_stage": (one, Layout(dp_shard=8, zero_stage=2), Layout(dp_shard=8, zero_stage=3)),
            "sequence_parallel": (one, plain, replace(plain, sequence_parallel=True)),
            "micro_batch_size": (one, plain, replace(plain, micro_batch_size=2)),
            "schedule": (
                one,
                Layout(pp=2, dp_replicate=4),
                Layout(pp=2, vpp=2, dp_replicate=4, schedule="interleaved"),
            ),
            "recompute": (one, plain, replace(plain, recompute="full")),
        }

    def broken(self):
        one = problem()
        return {
            "schedule-of-engine": (one, Layout(pp=2, vpp=2, dp_replicate=4, schedule="zb-v")),
            "tp-divides-kv-heads": (problem(nodes=2), Layout(tp=16)),
            "even-stages": (problem(model=replace(llama_3_8b(), num_hidden_layers=29)), Layout(pp=4, dp_replicate=2)),
            "fp8-tokens": (
                with_workload(problem(sequence_length=24), precision="fp8"),
                Layout(cp=2, dp_replicate=4),
            ),
            "experts-need-sequence-parallel": (problem(model=qwen3_30b_a3b()), Layout(tp=2, dp_replicate=4)),
            "replicas-hold-experts": (
                problem(model=qwen3_30b_a3b()),
                Layout(ep=8, dp_replicate=2, dp_shard=4, zero_stage=1),
            ),
            "fsdp-has-no-pipeline": (one, Layout(pp=2, dp_shard=4, zero_stage=3)),
            "model-can-be-described": (with_model(one, norms_per_layer=4), Layout(dp_replicate=8)),
            "gradients-can-be-said": (
                with_workload(one, precision="fp32", gradient_dtype="bf16"),
                Layout(dp_replicate=8),
            ),
        }

    def environment(self, folder: Path):
        return {"MEGATRON_DIR": str(folder)}


def refused(question: Problem, layout: Layout) -> list[str]:
    return [reason.code for reason in broken_rules(LayoutTable.of([layout]), 0, question, MEGATRON_LM.rules)]


@pytest.mark.parametrize(
    ("layers", "pp", "vpp"),
    [(126, 8, 4), (126, 8, 8), (126, 16, 4), (94, 4, 12), (94, 8, 2), (94, 8, 3), (80, 8, 5), (80, 16, 5)],
)
def test_layer_counts_of_shipped_recipes_are_legal_since_embedding_and_loss_count_as_layers(layers, pp, vpp):
    question = problem(model=replace(llama_3_70b(), num_hidden_layers=layers), nodes=16)
    layout = Layout(pp=pp, vpp=vpp, dp_replicate=128 // pp, schedule="interleaved")

    assert refused(question, layout) == []


@pytest.mark.parametrize(("layers", "pp", "vpp"), [(80, 16, 2), (29, 4, 1), (61, 4, 4)])
def test_layers_that_would_be_dropped_without_a_warning_are_refused(layers, pp, vpp):
    # 80 layers over 16·2 stages: 2 a stage would train 64. With embedding and loss 82 places, no multiple of 32 either.
    question = problem(model=replace(llama_3_70b(), num_hidden_layers=layers), nodes=16)
    schedule = "interleaved" if vpp > 1 else "1f1b"

    assert refused(question, Layout(pp=pp, vpp=vpp, dp_replicate=128 // pp, schedule=schedule)) == ["even-stages"]


def test_61_layers_over_16_stages_are_legal_when_token_prediction_is_counted_too():
    # embedding + 61 layers + 1 token-prediction layer + loss = 64 places = 16 · 4
    question = problem(model=deepseek_v3(), nodes=64, global_batch_size=1024)
    layout = Layout(ep=32, pp=16, dp_shard=32, zero_stage=1)

    flags = dict(flag for flag in layout_flags(layout, question.model) if len(flag) == 2)

    assert refused(question, layout) == []
    assert flags["--pipeline-model-parallel-layout"] == "|".join(["Ettt", *["tttt"] * 14, "ttmL"])
    assert "--num-virtual-stages-per-pipeline-rank" not in flags


def test_stages_that_come_out_even_only_with_the_loss_or_with_both_ends_are_said_to_count_them():
    loss, embedding = ("--account-for-loss-in-pipeline-split",), ("--account-for-embedding-in-pipeline-split",)

    def counted(layers: int) -> set[tuple[str, ...]]:
        model = replace(llama_3_8b(), num_hidden_layers=layers)
        return {loss, embedding} & set(layout_flags(Layout(pp=8), model))

    assert counted(32) == set()
    assert counted(31) == {loss}
    assert counted(30) == {loss, embedding}


def test_experts_with_tensor_parallelism_need_sequence_parallelism():
    question = problem(model=qwen3_30b_a3b())
    layout = Layout(tp=2, ep=4, dp_replicate=4)

    assert refused(question, layout) == ["experts-need-sequence-parallel"]
    assert refused(question, replace(layout, sequence_parallel=True)) == []


def test_expert_parallelism_may_be_wider_than_data_parallelism():
    # 4 GPUs, tp 2, pp 2, ep 2: etp·ep = 1·2 divides the 2 ranks of a stage although dp = 1.
    question = problem(model=qwen3_30b_a3b(), gpus_per_node=4)

    assert refused(question, Layout(tp=2, pp=2, ep=2, sequence_parallel=True)) == []


def test_copies_of_the_optimizer_each_hold_all_experts():
    # 16 ranks as 2 copies of 8: ep 8 fits into one copy, ep 16 would need both.
    question = problem(model=qwen3_30b_a3b(), nodes=2)
    copies = Layout(dp_replicate=2, dp_shard=8, zero_stage=1)

    assert refused(question, replace(copies, ep=8)) == []
    assert refused(question, replace(copies, ep=16)) == ["replicas-hold-experts"]
    assert refused(question, Layout(dp_replicate=16, ep=16)) == []


def test_every_degree_is_a_flag_also_the_ones():
    flags = dict(flag for flag in layout_flags(Layout(), llama_3_8b()) if len(flag) == 2)

    assert flags == {
        "--tensor-model-parallel-size": "1",
        "--pipeline-model-parallel-size": "1",
        "--context-parallel-size": "1",
        "--expert-model-parallel-size": "1",
        "--expert-tensor-parallel-size": "1",
        "--micro-batch-size": "1",
        "--num-virtual-stages-per-pipeline-rank": "1",
    }


@pytest.mark.parametrize(
    ("zero_stage", "switches", "strategy"),
    [
        (1, {"--use-distributed-optimizer"}, None),
        (2, {"--use-distributed-optimizer", "--use-megatron-fsdp"}, "optim_grads"),
        (3, {"--use-distributed-optimizer", "--use-megatron-fsdp"}, "optim_grads_params"),
    ],
)
def test_zero_stages_are_the_distributed_optimizer_and_megatron_fsdp(zero_stage, switches, strategy):
    flags = layout_flags(Layout(dp_replicate=2, dp_shard=4, zero_stage=zero_stage), llama_3_8b())
    values = dict(flag for flag in flags if len(flag) == 2)

    assert switches <= {flag[0] for flag in flags}
    assert values.get("--data-parallel-sharding-strategy") == strategy
    assert values["--num-distributed-optimizer-instances"] == "2"


def test_a_llama_has_grouped_queries_a_gated_mlp_and_no_biases():
    flags = model_flags(problem(model=llama_3_8b()))

    assert {("--swiglu",), ("--disable-bias-linear",), ("--untie-embeddings-and-output-weights",)} <= set(flags)
    assert {("--group-query-attention",), ("--num-query-groups", "8"), ("--kv-channels", "128")} <= set(flags)
    assert ("--ffn-hidden-size", "14336") in flags


def test_a_tied_head_is_not_untied_and_full_attention_has_no_groups():
    model = replace(llama_3_8b(), tied_embeddings=True, num_key_value_heads=32)

    names = {flag[0] for flag in model_flags(problem(model=model))}

    assert not names & {"--untie-embeddings-and-output-weights", "--group-query-attention", "--num-query-groups"}


def test_latent_attention_and_leading_dense_layers_are_said():
    flags = dict(flag for flag in model_flags(problem(model=deepseek_v3())) if len(flag) == 2)

    assert flags["--kv-lora-rank"] == "512"
    assert flags["--qk-head-dim"] == "128"
    assert flags["--moe-layer-freq"] == f"[{','.join(['0'] * 3 + ['1'] * 58)}]"
    assert flags["--mtp-num-layers"] == "1"
    assert "--num-query-groups" not in flags


def test_a_mixture_in_every_second_layer_starts_behind_a_plain_one():
    moe = MoeSpec(num_experts=8, experts_per_token=2, expert_intermediate_size=64, moe_layer_frequency=2)
    flags = dict(
        f for f in model_flags(problem(model=replace(llama_3_8b(), num_hidden_layers=5, moe=moe))) if len(f) == 2
    )

    assert flags["--moe-layer-freq"] == "[0,1,0,1,0]"


def test_gradients_in_bf16_and_fp8_training_are_said():
    workload = replace(problem().workload, precision="fp8", gradient_dtype="bf16")

    assert {("--bf16",), ("--fp8-format", "hybrid"), ("--grad-reduce-in-bf16",)} <= set(workload_flags(workload))


def launched_with(layout: Layout, question: Problem, folder: Path) -> tuple[list[str], str]:
    """(Arguments of torchrun, CUDA_DEVICE_MAX_CONNECTIONS) when the script runs."""
    commands = folder / "commands"
    commands.mkdir()
    (commands / "torchrun").write_text('#!/bin/bash\nprintf "%s\\n" "${CUDA_DEVICE_MAX_CONNECTIONS-unset}" "$@"\n')
    (commands / "torchrun").chmod(0o755)
    script = folder / "launch.sh"
    script.write_text(next(iter(MEGATRON_LM.write(layout, question, PREDICTION).values())))
    environment = {
        "PATH": f"{commands}:/usr/bin:/bin", "MEGATRON_DIR": str(folder), "MASTER_ADDR": "node-0",
        "CUDA_DEVICE_MAX_CONNECTIONS": "8",
    }  # fmt: skip
    done = subprocess.run(
        ["bash", str(script)], env=environment, capture_output=True, text=True, check=True, timeout=30
    )
    connections, *words = done.stdout.splitlines()
    return words, connections


def test_the_script_hands_torchrun_the_machines_and_pretrain_gpt_every_group_of_flags(tmp_path):
    question = problem(model=llama_3_70b(), nodes=2)
    words, connections = launched_with(Layout(tp=8, pp=2, sequence_parallel=True), question, tmp_path)

    script = words.index("pretrain_gpt.py")
    assert words[:script] == [
        "--nnodes", "2", "--nproc-per-node", "8",
        "--rdzv-backend", "c10d", "--rdzv-endpoint", "node-0:29500", "--rdzv-id", "autotune",
    ]  # fmt: skip
    assert {"--sequence-parallel", "--bf16", "--swiglu", "--mock-data"} <= set(words[script:])
    assert connections == "1"


def test_megatron_fsdp_runs_with_the_default_number_of_connections(tmp_path):
    words, connections = launched_with(Layout(dp_shard=8, zero_stage=3), problem(), tmp_path)

    assert connections == "unset"
    assert words[:5] == ["--nnodes", "1", "--nproc-per-node", "8", "--standalone"]
