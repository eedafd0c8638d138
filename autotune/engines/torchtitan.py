"""Engine torchtitan: pytorch/torchtitan, started by a launch script with a Python recipe.

A recipe, since its command-line options for single settings are frozen and to be removed (torchtitan/config/README.md).
"""

from pathlib import PurePosixPath
from typing import Final

import numpy as np

from autotune.cost.profile import MemoryProfile
from autotune.engines import traits
from autotune.engines.definition import EngineDefinition
from autotune.engines.memory_figures import ALLOCATOR_SLACK, OUTSIDE_BYTES, OUTSIDE_PER_PEER_BYTES, UPPER_BOUND
from autotune.engines.protocol import LaunchFiles, Prediction
from autotune.engines.pytorch_rules import fsdp2_shards_gradients, selective_recompute_needs_one_backward
from autotune.engines.script import header, machines_of, render
from autotune.engines.torchtitan_models import SHIPPED, can_be_built
from autotune.engines.torchtitan_recipe import DTYPES, SCHEDULE_NAMES, recipe_values
from autotune.space.optional_rules import kv_heads_divide_tp, micro_batches_fill_stages, runs_schedules
from autotune.space.rules import Rule
from autotune.spec.figure import Basis, Figure
from autotune.spec.layout import IntColumn, Layout, LayoutTable
from autotune.spec.workload import Problem
from autotune.units import GIB

NAME: Final = "torchtitan"
VERSIONS: Final = "after 0.2.2 (main of 2026-08-21, b5bcd76)"
WHO: Final = "torchtitan after 0.2.2"
SCHEDULES: Final = tuple(SCHEDULE_NAMES)
LOSS_CHUNKS: Final = 8
"""ChunkedLossWrapper.Config.num_chunks in torchtitan/components/loss.py; each chunk has the same number of tokens."""
SCRIPT: Final = PurePosixPath("launch.sh")
RECIPE: Final = PurePosixPath("recipe.py")

MEMORY: Final = MemoryProfile(
    master_weights=False,
    weight_bytes_per_param=4.0,
    state_shards_over_cp=True,
    experts_shard_over_replicas=False,
    gathered_layers=2,
    logits_bytes_per_element=Figure(
        value=12.0 / LOSS_CHUNKS,
        basis=Basis.INTERPOLATED,
        source="12.0 bytes an element, measured for cross_entropy(logits.float()).backward() with torch 2.13.0+cpu, "
        "over the 8 chunks of ChunkedLossWrapper (torchtitan/components/loss.py), of which one lives at a time",
        date="2026-12-01",
    ),
    gradient_bucket_bytes=Figure(
        value=1.0 * GIB,
        basis=Basis.MEASURED,
        source="torchtitan, benchmarks/llama3_h100_202412_torchtitan.md: 15.0 to 15.4 GiB less on 128 than on 8 GPUs, "
        "where 16 bytes a parameter explain 14.02",
        date="2024-12-01",
    ),
    outside_bytes=OUTSIDE_BYTES,
    outside_per_peer_bytes=OUTSIDE_PER_PEER_BYTES,
    allocator_slack=ALLOCATOR_SLACK,
    upper_bound=UPPER_BOUND,
    vocab_multiple=1,
    pipeline_accumulates_gradients=True,
    selective_recompute=("norms", "activation_function"),
)


def _token_divisor(table: LayoutTable) -> IntColumn:
    """Equal pieces of a micro-batch's tokens: two for each cp rank, one for each tp rank, chunks of the loss."""
    pieces = np.where(table.cp > 1, 2 * table.cp, 1) * np.where(table.sequence_parallel, table.tp, 1)
    chunks = np.where(table.cp > 1, table.cp, 1) * np.where(table.sequence_parallel, table.tp, 1) * LOSS_CHUNKS
    return np.asarray(np.lcm(pieces, chunks), dtype=np.int64)


def _tokens_reason(table: LayoutTable, row: int, problem: Problem) -> str:
    micro, length = int(table.micro_batch_size[row]), problem.workload.sequence_length
    return (
        f"{WHO}: the micro_batch_size·sequence = {micro}·{length} = {micro * length} tokens of a micro-batch must be "
        f"a multiple of {_token_divisor(table)[row]} (cp={table.cp[row]}, tp={table.tp[row]}, {LOSS_CHUNKS} chunks of "
        f"the loss); give another micro_batch_size or sequence length"
    )


def _expert_ranks_reason(table: LayoutTable, row: int, problem: Problem) -> str:
    shard, cp, tp = int(table.dp_shard[row]), int(table.cp[row]), int(table.tp[row])
    return (
        f"{WHO}: ep={table.ep[row]} must divide dp_shard·cp·tp = {shard}·{cp}·{tp} = {shard * cp * tp}, since each of "
        f"the dp_replicate copies holds all experts; lower ep, or move dp_replicate to dp_shard"
    )


RULES: Final[tuple[Rule, ...]] = (
    runs_schedules(SCHEDULES, needs=WHO),
    kv_heads_divide_tp(needs=WHO),
    micro_batches_fill_stages(needs=f"{WHO} hangs otherwise", schedules=("1f1b",)),
    fsdp2_shards_gradients(needs=WHO),
    selective_recompute_needs_one_backward(needs=WHO),
    Rule(
        code="tied-embeddings-need-one-stage",
        axes=("pp",),
        holds=lambda t, p: (t.pp == 1) | np.full(len(t), not p.model.tied_embeddings),
        reason=lambda t, i, p: (
            f"{WHO}: {p.model.name} shares one matrix of {p.model.vocab_size} rows between embedding and head, which "
            f"pp={t.pp[i]} would part; give pp=1"
        ),
    ),
    Rule(
        code="experts-are-not-cut",
        axes=("etp",),
        holds=lambda t, p: t.etp == 1,
        reason=lambda t, i, p: f"{WHO} never cuts an expert, but etp={t.etp[i]}; give etp=1",
    ),
    Rule(
        code="replicas-hold-experts",
        axes=("tp", "cp", "dp_shard", "ep"),
        holds=lambda t, p: (t.dp_shard * t.cp * t.tp) % t.ep == 0,
        reason=_expert_ranks_reason,
    ),
    Rule(
        code="micro-batch-tokens-divide",
        axes=("tp", "cp", "sequence_parallel", "micro_batch_size"),
        holds=lambda t, p: (t.micro_batch_size * p.workload.sequence_length) % _token_divisor(t) == 0,
        reason=_tokens_reason,
    ),
)


def _unsaid(problem: Problem) -> list[str]:
    workload = problem.workload
    wanted = {
        "precision": (workload.precision, tuple(DTYPES)),
        "optimizer": (workload.optimizer, ("adamw",)),
        "gradient_dtype": (workload.gradient_dtype, ("fp32",)),
        "attention": (workload.attention, ("flash",)),
    }
    return [
        f"{name}={value} (not {' or '.join(known)})" for name, (value, known) in wanted.items() if value not in known
    ]


LAUNCH_RULES: Final[tuple[Rule, ...]] = (
    traits.describes_models(needs=WHO, known=(traits.TIED, traits.QK_NORM, traits.EXPERTS)),
    Rule(
        code="shape-can-be-built",
        axes=(),
        holds=lambda t, p: np.full(len(t), can_be_built(p.model)),
        reason=lambda t, i, p: (
            f"{WHO} ships {len(SHIPPED)} sizes of Llama 3 and Qwen3 and builds dense ones of other sizes; "
            f"{p.model.name} with hidden_size={p.model.hidden_size} and head_dim={p.model.head_dim} is neither; write "
            f"its model by hand"
        ),
    ),
    Rule(
        code="training-can-be-said",
        axes=(),
        holds=lambda t, p: np.full(len(t), not _unsaid(p)),
        reason=lambda t, i, p: (
            f"{WHO}: the recipe cannot say {', '.join(_unsaid(p))}; rank without it, or add it by hand"
        ),
    ),
)


def write(layout: Layout, problem: Problem, prediction: Prediction) -> LaunchFiles:
    """launch.sh, and recipe.py that it names."""
    head = header(NAME, VERSIONS, layout, problem, prediction)
    machines = machines_of(layout, problem)
    script = render("torchtitan.sh.j2", {"header": head, "machines": machines, "beside": RECIPE.name})
    return {SCRIPT: script, RECIPE: render("recipe.py.j2", {"header": head} | recipe_values(layout, problem))}


TORCHTITAN: Final = EngineDefinition(
    name=NAME,
    versions=VERSIONS,
    schedules=SCHEDULES,
    rules=RULES,
    launch_rules=LAUNCH_RULES,
    memory=MEMORY,
    defaults={"zero_stage": 3, "sequence_parallel": True, "recompute": "selective"},
    writer=write,
)
