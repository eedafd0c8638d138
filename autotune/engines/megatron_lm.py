"""Engine megatron-lm: NVIDIA Megatron-LM, started by a shell script of flags."""

from pathlib import PurePosixPath
from typing import Final

import numpy as np

from autotune.cost.profile import MemoryProfile
from autotune.engines import traits
from autotune.engines.definition import EngineDefinition
from autotune.engines.megatron_flags import layout_flags, model_flags, workload_flags
from autotune.engines.memory_figures import ALLOCATOR_SLACK, OUTSIDE_BYTES, OUTSIDE_PER_PEER_BYTES, UPPER_BOUND
from autotune.engines.protocol import LaunchFiles, Prediction
from autotune.engines.script import header, machines_of, render
from autotune.space.optional_rules import even_stages, fp8_tokens_multiple, kv_heads_divide_tp, runs_schedules
from autotune.space.rules import Rule
from autotune.spec.figure import Basis, Figure
from autotune.spec.layout import BoolColumn, Layout, LayoutTable
from autotune.spec.workload import Problem

NAME: Final = "megatron-lm"
VERSIONS: Final = "core_v0.16 – core_v0.20"
WHO: Final = f"Megatron-LM {VERSIONS}"
SCHEDULES: Final = ("1f1b", "interleaved")
SCRIPT: Final = PurePosixPath("launch.sh")

MEMORY: Final = MemoryProfile(
    master_weights=True,
    state_shards_over_cp=True,
    experts_shard_over_replicas=False,
    gathered_layers=2,
    logits_bytes_per_element=Figure(
        value=6.0,
        basis=Basis.DATASHEET,
        source="megatron/core/tensor_parallel/cross_entropy.py: bf16 logits (2) and their fp32 copy (4), which the "
        "softmax and then the gradient overwrite in place",
        date="2026-08-22",
    ),
    gradient_bucket_bytes=Figure(
        value=0.0,
        basis=Basis.DATASHEET,
        source="megatron/core/distributed/param_and_grad_buffer.py: buckets are parts of the gradient buffer, "
        "reduced in place",
        date="2026-08-22",
    ),
    outside_bytes=OUTSIDE_BYTES,
    outside_per_peer_bytes=OUTSIDE_PER_PEER_BYTES,
    allocator_slack=ALLOCATOR_SLACK,
    upper_bound=UPPER_BOUND,
    vocab_multiple=128,
    fused_activation_function=True,
    selective_recompute=("core_attention",),
)


def _experts_need_sp(table: LayoutTable, problem: Problem) -> BoolColumn:
    dense = problem.model.moe is None
    return np.asarray(table.sequence_parallel | (table.tp == 1) | dense, dtype=np.bool_)


def _replicas_hold_experts(table: LayoutTable) -> BoolColumn:
    """Copies of the optimizer are copies of the experts too: each has all of them."""
    inside = table.tp * table.cp * table.dp_shard
    one_copy = (table.zero_stage == 0) | (table.dp_replicate == 1)
    return np.asarray(one_copy | (inside % (table.ep * table.etp) == 0), dtype=np.bool_)


def _replicas_reason(table: LayoutTable, row: int, problem: Problem) -> str:
    tp, cp, shard = int(table.tp[row]), int(table.cp[row]), int(table.dp_shard[row])
    ep, etp = int(table.ep[row]), int(table.etp[row])
    return (
        f"{WHO}: each of the dp_replicate={table.dp_replicate[row]} copies of the optimizer holds all experts, so "
        f"etp·ep = {etp}·{ep} = {etp * ep} must divide tp·cp·dp_shard = {tp}·{cp}·{shard} = {tp * cp * shard}; lower "
        f"ep, or move dp_replicate to dp_shard"
    )


RULES: Final[tuple[Rule, ...]] = (
    runs_schedules(SCHEDULES, needs=WHO),
    kv_heads_divide_tp(
        needs="Megatron-Core before 0.16 cannot copy kv heads, and the memory model does not count the copies that "
        "later ones make"
    ),
    even_stages(needs=WHO, spare_slots=2),
    fp8_tokens_multiple(needs=f"TransformerEngine under {WHO}"),
    Rule(
        code="experts-need-sequence-parallel",
        axes=("tp", "sequence_parallel"),
        holds=_experts_need_sp,
        reason=lambda t, i, p: (
            f"{WHO}: experts with tp={t.tp[i]} train only with sequence_parallel, else each of the {t.tp[i]} tensor "
            f"ranks routes the same tokens; switch sequence_parallel on, or give tp=1"
        ),
    ),
    Rule(
        code="replicas-hold-experts",
        axes=("tp", "cp", "dp_replicate", "dp_shard", "ep", "etp", "zero_stage"),
        holds=lambda t, p: _replicas_hold_experts(t),
        reason=_replicas_reason,
    ),
    Rule(
        code="fsdp-has-no-pipeline",
        axes=("pp", "zero_stage"),
        holds=lambda t, p: (t.pp == 1) | (t.zero_stage < 2),
        reason=lambda t, i, p: (
            f"{WHO}: zero_stage={t.zero_stage[i]} is Megatron-FSDP, which is tested with tp, cp and ep but not with pp="
            f"{t.pp[i]}; give zero_stage 0 or 1, or pp=1"
        ),
    ),
)


def _gradients_can_be_said(problem: Problem) -> bool:
    return problem.workload.gradient_dtype == "fp32" or problem.workload.precision in ("bf16", "fp8")


LAUNCH_RULES: Final[tuple[Rule, ...]] = (
    traits.describes_models(
        needs=WHO,
        known=(
            traits.TIED, traits.EXPERTS, traits.LATENT_ATTENTION, traits.TOKEN_PREDICTION, traits.QK_NORM,
            traits.QKV_BIAS, traits.EVERY_BIAS, traits.PLAIN_GELU, traits.LAYERNORM, traits.LEARNED_POSITIONS,
        ),
    ),
    Rule(
        code="gradients-can-be-said",
        axes=(),
        holds=lambda t, p: np.full(len(t), _gradients_can_be_said(p)),
        reason=lambda t, i, p: (
            f"{WHO}: gradients in {p.workload.gradient_dtype} go with bf16 or fp8 training, not with "
            f"{p.workload.precision}; give --gradient-dtype fp32"
        ),
    ),
)  # fmt: skip


def write(layout: Layout, problem: Problem, prediction: Prediction) -> LaunchFiles:
    """launch.sh: run it in a checkout, under sbatch or by hand on each node."""
    text = render(
        "megatron_lm.sh.j2",
        {
            "header": header(NAME, VERSIONS, layout, problem, prediction),
            "machines": machines_of(layout, problem),
            "fsdp": layout.zero_stage >= 2,
            "rotary": problem.model.learned_positions == 0,
            "vocab_size": problem.model.vocab_size - 1,
            "groups": {
                "LAYOUT": layout_flags(layout, problem.model),
                "BATCH": workload_flags(problem.workload),
                "MODEL": model_flags(problem),
            },
        },
    )
    return {SCRIPT: text}


MEGATRON_LM: Final = EngineDefinition(
    name=NAME,
    versions=VERSIONS,
    schedules=SCHEDULES,
    rules=RULES,
    launch_rules=LAUNCH_RULES,
    memory=MEMORY,
    defaults={"etp": "tp"},
    writer=write,
)
