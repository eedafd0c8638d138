"""Tensor parallelism (DTensor) and sharding (FSDP2 `fully_shard`) of one stage, block by block as it is built.

A block's parameters exist whole on a rank only between the moment they are drawn and the moment they are cut.
"""

import torch
from torch import nn
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    ParallelStyle,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

from autotune.spec.schedules import SCHEDULES
from autotune.spec.workload import GradientDtype, Precision, WorkloadSpec
from autotune.worker.model import Stage, tie
from autotune.worker.places import Place, uses_fsdp
from autotune.worker.weights import materialize

COMPUTE_DTYPE: dict[Precision, torch.dtype] = {"fp32": torch.float32, "bf16": torch.bfloat16}
REDUCE_DTYPE: dict[GradientDtype, torch.dtype] = {"fp32": torch.float32, "bf16": torch.bfloat16}

_SEQUENCE = 1
"""Of hidden states: [batch, sequence, hidden]."""
_HEADS = 2
"""Of queries and keys before they are transposed: [batch, sequence, heads, head_dim]."""

Plan = dict[str, ParallelStyle]


def parallelize(stage: Stage, place: Place, workload: WorkloadSpec, *, seed: int) -> None:
    """Give the stage's parameters memory and first values, and cut them as the layout says."""
    sequence_parallel, tensor_parallel = place.layout.sequence_parallel, place.layout.tp > 1
    sharded = uses_fsdp(place.layout, workload)
    for name, block in stage.layers.items():
        materialize(block, prefix=f"layers.{name}", device=place.device, seed=seed)
        if tensor_parallel:
            _cut(block, place, _block_plan(block, sequence_parallel=sequence_parallel))
        if sharded:
            _shard([block], place, workload, keep_gathered=_keeps_gathered(place))
    for name, module in stage.named_children():
        if name != "layers":
            same = name == "head" and stage.tied
            materialize(module, prefix="embedding" if same else name, device=place.device, seed=seed)
    if tensor_parallel:
        _cut(stage, place, _ends_plan(stage, sequence_parallel=sequence_parallel))
    if stage.tied:
        tie(stage)
    if sharded:
        _shard_ends(stage, place, workload)
        _sum_gradients(stage)


def _block_plan(block: nn.Module, *, sequence_parallel: bool) -> Plan:
    """Heads and MLP width are cut; between them hidden states are whole on each rank, or cut along the sequence."""
    between = Shard(_SEQUENCE) if sequence_parallel else Replicate()
    whole = PrepareModuleInput(input_layouts=(between,), desired_input_layouts=(Replicate(),))
    plan: Plan = {
        "attention": whole,
        "mlp": whole,
        "attention.query": ColwiseParallel(),
        "attention.key": ColwiseParallel(),
        "attention.value": ColwiseParallel(),
        "attention.output": RowwiseParallel(output_layouts=between),
        "mlp.gate": ColwiseParallel(),
        "mlp.up": ColwiseParallel(),
        "mlp.down": RowwiseParallel(output_layouts=between),
        # Their scales are shared by all heads, so each rank has a part of their gradients.
        "attention.query_norm": SequenceParallel(sequence_dim=_HEADS, use_local_output=True),
        "attention.key_norm": SequenceParallel(sequence_dim=_HEADS, use_local_output=True),
    }
    if sequence_parallel:
        plan |= {
            name: SequenceParallel(sequence_dim=_SEQUENCE, use_local_output=True)
            for name in ("attention_norm", "mlp_norm", "after_attention_norm", "after_mlp_norm")
        }
    return _present(plan, block)


def _ends_plan(stage: Stage, *, sequence_parallel: bool) -> Plan:
    """Embedding and head are cut along the vocabulary; the logits stay cut."""
    between = Shard(_SEQUENCE) if sequence_parallel else Replicate()
    plan: Plan = {
        "embedding": RowwiseParallel(input_layouts=Replicate(), output_layouts=between),
        "head": ColwiseParallel(input_layouts=between, output_layouts=Shard(-1), use_local_output=False),
    }
    if sequence_parallel:
        plan |= {name: SequenceParallel(use_local_output=True) for name in ("embedding_norm", "final_norm")}
    return _present(plan, stage)


def _present(plan: Plan, module: nn.Module) -> Plan:
    names = {name for name, _ in module.named_modules()}
    return {name: style for name, style in plan.items() if name in names}


def _cut(module: nn.Module, place: Place, plan: Plan) -> None:
    # Every rank has drawn the same whole values, so none needs to be sent.
    parallelize_module(module, place.tensor, plan, src_data_rank=None)


def _shard(modules: list[nn.Module], place: Place, workload: WorkloadSpec, *, keep_gathered: bool) -> None:
    """Shard the parameters of `modules` as one group. keep_gathered: from the forward to the backward pass."""
    dtype = COMPUTE_DTYPE[workload.precision]
    policy = MixedPrecisionPolicy(
        param_dtype=None if dtype is torch.float32 else dtype, reduce_dtype=REDUCE_DTYPE[workload.gradient_dtype]
    )
    together = modules[0] if len(modules) == 1 else modules
    fully_shard(together, mesh=place.sharding, reshard_after_forward=not keep_gathered, mp_policy=policy)


def _keeps_gathered(place: Place) -> bool:
    """Whether weights stay gathered from the forward to the backward pass: stage 2 does not shard them.

    Where a schedule splits the backward pass they must: torch looks for the parameters of a stage before FSDP2 gathers
    them again, finds the shards, and leaves gradients out without a word (torch 2.13, 2026-12-01). The schedule itself
    gathers and frees whole stages then.
    """
    layout = place.layout
    return layout.zero_stage == 2 or (layout.pp > 1 and SCHEDULES[layout.schedule].splits_backward)


def _shard_ends(stage: Stage, place: Place, workload: WorkloadSpec) -> None:
    """Embedding and head as two groups. A parameter that both use belongs to the root's group, there all the time."""
    keep_gathered = _keeps_gathered(place)
    shared = stage.tied and stage.embedding is not None and stage.head is not None
    if not shared:
        first = [m for m in (stage.embedding, stage.positions, stage.embedding_norm) if m is not None]
        last = [m for m in (stage.final_norm, stage.head) if m is not None]
        if first:
            _shard(first, place, workload, keep_gathered=keep_gathered)
        if last:  # the backward pass begins with it
            _shard(last, place, workload, keep_gathered=True)
    _shard([stage], place, workload, keep_gathered=keep_gathered or shared)


def _sum_gradients(stage: Stage) -> None:
    """Make FSDP2 sum gradients instead of averaging them: the loss is already divided by the tokens of the step."""
    for module in stage.modules():
        if isinstance(module, FSDPModule):
            module.set_gradient_divide_factor(1.0)
            module.set_force_sum_reduction_for_comms(True)
