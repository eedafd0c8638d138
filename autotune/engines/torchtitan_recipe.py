"""torchtitan's settings: tables from axes to fields of its Trainer.Config, for both directions, and a recipe's values.

Read in torchtitan/config/configs.py, trainer.py and distributed/pipeline_parallel.py, main of 2026-08-21 (b5bcd76).
"""

from typing import Final

from autotune.engines.stage_sizes import stage_sizes
from autotune.engines.torchtitan_models import family_of, shipped
from autotune.spec.axes import AxisValue
from autotune.spec.layout import Layout
from autotune.spec.model import ModelSpec
from autotune.spec.workload import Problem

Settings = dict[str, AxisValue]
"""Fields of Trainer.Config by dotted name, with their values."""

AXIS_FIELDS: Final[dict[str, str]] = {
    "tp": "parallelism.tensor_parallel_degree",
    "pp": "parallelism.pipeline_parallel_degree",
    "dp_replicate": "parallelism.data_parallel_replicate_degree",
    "dp_shard": "parallelism.data_parallel_shard_degree",
    "cp": "parallelism.context_parallel_degree",
    "ep": "parallelism.expert_parallel_degree",
    "sequence_parallel": "parallelism.enable_sequence_parallel",
}
"""Axes whose value is a field's value."""

SCHEDULE_FIELD: Final = "parallelism.pipeline_parallel_schedule"
SCHEDULE_NAMES: Final[dict[str, str]] = {
    "1f1b": "1F1B",
    "gpipe": "GPipe",
    "interleaved": "Interleaved1F1B",
    "breadth-first": "LoopedBFS",
    "interleaved-zb": "InterleavedZeroBubble",
    "zb-v": "ZBVZeroBubble",
    "dualpipev": "DualPipeV",
}

RESHARD_FIELD: Final = "parallelism.fsdp_reshard_after_forward"
RESHARD: Final[dict[int, str]] = {0: "never", 2: "never", 3: "always"}
"""zero_stage; 0 is told from 2 by dp_shard = 1."""

RECOMPUTE_CLASS: Final[dict[str, str | None]] = {"none": None, "selective": "SelectiveAC", "full": "FullAC"}

TOKENS_FIELD: Final = "training.num_tokens_per_microbatch_per_dp_rank"
"""micro_batch_size times the sequence length."""

DTYPES: Final = {"bf16": "bfloat16", "fp32": "float32"}


def settings(layout: Layout, problem: Problem) -> Settings:
    """Every field that the layout and the batch decide, also the 1s. vpp is the length of the list of stages."""
    workload = problem.workload
    micro_batches = layout.num_microbatches(workload.global_batch_size)
    values: Settings = {field: getattr(layout, axis) for axis, field in AXIS_FIELDS.items()}
    values[RESHARD_FIELD] = RESHARD[layout.zero_stage]
    values[SCHEDULE_FIELD] = SCHEDULE_NAMES[layout.schedule]
    values |= {
        "parallelism.num_pp_microbatches": micro_batches if layout.pp > 1 else 1,
        "training.max_context_length": workload.sequence_length,
        TOKENS_FIELD: layout.micro_batch_size * workload.sequence_length,
        "training.num_tokens_per_train_step": workload.tokens_per_step,
        "training.dtype": "float32",
        "training.mixed_precision_param": DTYPES[workload.precision],
        "training.mixed_precision_reduce": "float32",
        # Graphs hold memory that the prediction does not know, and exclude pipelines.
        "training.disable_cuda_graphs": True,
    }
    return values


def stage_modules(layout: Layout, layers: int) -> list[list[str]] | None:
    """Names of the modules of each stage, so that torchtitan cuts the model where the prediction does."""
    if layout.pp == 1:
        return None
    stages, first = [], 0
    for size in stage_sizes(layout, layers):
        stages.append([f"layers.{index}" for index in range(first, first + size)])
        first += size
    stages[0].insert(0, "tok_embeddings")
    stages[-1] += ["norm", "lm_head"]
    return stages


def recipe_values(layout: Layout, problem: Problem) -> dict[str, object]:
    """What the recipe's template needs."""
    model = problem.model
    return {
        "settings": settings(layout, problem),
        "stages": stage_modules(layout, model.num_hidden_layers),
        "recompute": RECOMPUTE_CLASS[layout.recompute],
        "shipped": shipped(model),
        "family": family_of(model),
        "model": model,
        "positions": _positions(model, problem.workload.sequence_length),
    }


def _positions(model: ModelSpec, sequence_length: int) -> int:
    return max(model.max_position_embeddings, sequence_length)
