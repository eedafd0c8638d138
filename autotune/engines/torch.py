"""Engine torch: our own worker under torchrun, made of FSDP2, DTensor and torch.distributed.pipelining.

The worker is never imported here; what it cannot do is restated as rules.
"""

import json
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Final

import numpy as np

from autotune.cost.profile import MemoryProfile
from autotune.engines import traits
from autotune.engines.definition import EngineDefinition
from autotune.engines.memory_figures import (
    ALLOCATOR_SLACK,
    CPU_OUTSIDE_BYTES,
    NOTHING_PER_PEER,
    OUTSIDE_BYTES,
    OUTSIDE_PER_PEER_BYTES,
    UPPER_BOUND,
)
from autotune.engines.protocol import LaunchFiles, Prediction
from autotune.engines.pytorch_rules import fsdp2_shards_gradients
from autotune.engines.script import Machines, header, machines_of, render
from autotune.space.optional_rules import kv_heads_divide_tp, micro_batches_fill_stages, runs_schedules
from autotune.space.rules import Rule
from autotune.spec.figure import Basis, Figure
from autotune.spec.layout import Layout
from autotune.spec.load import to_json
from autotune.spec.outcome import TrialSpec
from autotune.spec.workload import Problem

NAME: Final = "torch"
VERSIONS: Final = "2.11 – 2.13"
WHO: Final = f"torch {VERSIONS}"
SCHEDULES: Final = ("1f1b", "gpipe", "interleaved", "breadth-first", "interleaved-zb", "zb-v", "dualpipev")
PRECISIONS: Final = ("bf16", "fp32")
SCRIPT: Final = PurePosixPath("run.sh")
TRIAL: Final = PurePosixPath("trial.json")

MEMORY: Final = MemoryProfile(
    master_weights=False,
    weight_bytes_per_param=4.0,
    state_shards_over_cp=True,
    gathered_layers=2,
    logits_bytes_per_element=Figure(
        value=12.0,
        basis=Basis.MEASURED,
        source="torch 2.13.0+cpu, allocations of cross_entropy(logits.float()).backward() on 64 x 65536 logits in bf16 "
        "and in fp32: 12.0 bytes an element at the peak",
        date="2026-12-01",
    ),
    gradient_bucket_bytes=Figure(
        value=0.0,
        basis=Basis.DATASHEET,
        source="torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py: the reduce-scatter input is one group's "
        "unsharded gradients, which are counted apart",
        date="2026-12-01",
    ),
    outside_bytes=OUTSIDE_BYTES,
    outside_per_peer_bytes=OUTSIDE_PER_PEER_BYTES,
    allocator_slack=ALLOCATOR_SLACK,
    upper_bound=UPPER_BOUND,
    vocab_multiple=1,
    selective_recompute=("core_attention",),
    gradients_as_weights=True,
    pipeline_accumulates_gradients=True,
    split_backward_keeps_gathered=True,
)

CPU_MEMORY: Final = replace(MEMORY, outside_bytes=CPU_OUTSIDE_BYTES, outside_per_peer_bytes=NOTHING_PER_PEER)


RULES: Final[tuple[Rule, ...]] = (
    runs_schedules(SCHEDULES, needs=WHO),
    kv_heads_divide_tp(needs=f"{WHO} cuts keys and values by whole heads"),
    micro_batches_fill_stages(needs=WHO, schedules=("1f1b",)),
    fsdp2_shards_gradients(needs=WHO),
    Rule(
        code="learned-positions-are-not-cut",
        axes=("sequence_parallel",),
        holds=lambda t, p: ~t.sequence_parallel | (p.model.learned_positions == 0),
        reason=lambda t, i, p: (
            f"the worker of {WHO}: sequence_parallel={t.sequence_parallel[i]} would cut the "
            f"{p.model.learned_positions} learned positions of {p.model.name}, which is not built; switch it off"
        ),
    ),
)


def _positions_can_be_built(problem: Problem) -> bool:
    """Rotary positions turn pairs of a head's numbers; learned ones are as many as there are."""
    model = problem.model
    return model.learned_positions >= problem.workload.sequence_length or (
        model.learned_positions == 0 and model.head_dim % 2 == 0
    )


LAUNCH_RULES: Final[tuple[Rule, ...]] = (
    traits.describes_models(
        needs=f"the worker of {WHO}",
        known=(
            traits.TIED, traits.QK_NORM, traits.QKV_BIAS, traits.EVERY_BIAS, traits.MIXED_BIASES, traits.HEAD_BIAS,
            traits.PLAIN_GELU, traits.OTHER_MLP, traits.LAYERNORM, traits.UNBIASED_LAYERNORM, traits.ONE_NORM,
            traits.FOUR_NORMS, traits.NO_FINAL_NORM, traits.EMBEDDING_NORM, traits.LEARNED_POSITIONS,
        ),
    ),
    Rule(
        code="positions-can-be-built",
        axes=(),
        holds=lambda t, p: np.full(len(t), _positions_can_be_built(p)),
        reason=lambda t, i, p: (
            f"the worker of {WHO}: sequences of {p.workload.sequence_length} tokens have no positions with "
            f"learned_positions={p.model.learned_positions} and head_dim={p.model.head_dim}; it needs as many learned "
            f"positions as tokens, or none and an even head_dim; give a shorter sequence"
        ),
    ),
    Rule(
        code="precision-is-run",
        axes=(),
        holds=lambda t, p: np.full(len(t), p.workload.precision in PRECISIONS),
        reason=lambda t, i, p: (
            f"the worker of {WHO} runs {' and '.join(PRECISIONS)}, not {p.workload.precision}; give --precision bf16, "
            f"or rank without trials"
        ),
    ),
)  # fmt: skip


def trial_spec(layout: Layout, problem: Problem, machines: Machines) -> TrialSpec:
    """What the worker is asked. A CPU process may hold what the cluster gives it; a GPU sets its own limit."""
    gpu = problem.cluster.gpu
    return TrialSpec(
        layout=layout,
        model=problem.model,
        workload=problem.workload,
        device=gpu.device,
        nodes=machines.nodes,
        processes_per_node=machines.processes_per_node,
        memory_limit_bytes=int(gpu.usable_memory_bytes.value) if gpu.device == "cpu" else None,
    )


def write(layout: Layout, problem: Problem, prediction: Prediction) -> LaunchFiles:
    """trial.json and run.sh, which starts the worker on it and leaves result.json beside."""
    machines = machines_of(layout, problem)
    script = render(
        "torchrun.sh.j2",
        {
            "header": header(NAME, VERSIONS, layout, problem, prediction),
            "machines": machines,
            "beside": TRIAL.name,
            "on_gpus": problem.cluster.gpu.device == "cuda",
        },
    )
    trial = json.dumps(to_json(trial_spec(layout, problem, machines)), indent=2) + "\n"
    return {SCRIPT: script, TRIAL: trial}


TORCH: Final = EngineDefinition(
    name=NAME,
    versions=VERSIONS,
    schedules=SCHEDULES,
    rules=RULES,
    launch_rules=LAUNCH_RULES,
    memory=MEMORY,
    cpu_memory=CPU_MEMORY,
    defaults={"zero_stage": 3},
    runs_trials=True,
    writer=write,
)
