"""What the worker cannot do, as sentences. A trial that asks for it is invalid; it is no crash."""

from autotune.spec.cluster import Device
from autotune.spec.layout import Layout
from autotune.spec.model import ModelSpec
from autotune.spec.outcome import TrialSpec
from autotune.spec.schedules import SCHEDULES
from autotune.spec.workload import WorkloadSpec
from autotune.worker.pipeline import runs_schedule


def unsupported(layout: Layout, model: ModelSpec, workload: WorkloadSpec, device: Device) -> list[str]:
    """Every reason why the worker cannot run this; empty if it can."""
    return [
        *_model(model, workload, device),
        *_workload(workload),
        *_sharding(layout, workload),
        *_tensor_parallel(layout, model, workload),
        *_pipeline(layout, model, workload),
    ]


def not_this_trial(spec: TrialSpec) -> list[str]:
    """`unsupported` and what the number of processes has to do with it."""
    reasons = unsupported(spec.layout, spec.model, spec.workload, spec.device)
    if spec.layout.gpus != spec.world_size:
        reasons.insert(0, f"the layout is for {spec.layout.gpus} processes, but {spec.world_size} were asked for")
    return reasons


def _model(model: ModelSpec, workload: WorkloadSpec, device: Device) -> list[str]:
    length = workload.sequence_length
    windowed = model.sliding_window_layers > 0 and 0 < model.sliding_window < length
    checks = {
        "a mixture of experts is not built: PyTorch has no expert parallelism of its own": model.moe is not None,
        "multi-head latent attention is not built": model.mla is not None,
        f"mtp_layers={model.mtp_layers}: multi-token prediction is not built": model.mtp_layers > 0,
        "attention sinks are not built: the fused attention kernels have none": model.attention_sinks,
        f"a sliding window of {model.sliding_window} tokens is not built, and the sequence has {length}": windowed,
        "an RMSNorm with a bias is not built": model.norm == "rmsnorm" and model.norm_bias,
        f"norms_per_layer={model.norms_per_layer} is not 1, 2 or 4": model.norms_per_layer not in (1, 2, 4),
        f"head_dim={model.head_dim} is odd, and rotary positions turn pairs": model.head_dim % 2 == 1,
        f"num_key_value_heads={model.num_key_value_heads} does not divide num_attention_heads="
        f"{model.num_attention_heads}": model.num_attention_heads % model.num_key_value_heads > 0,
        f"learned_positions={model.learned_positions} is less than the sequence of {length} tokens": (
            0 < model.learned_positions < length
        ),
        f"device {device} is not cuda or cpu": device not in ("cuda", "cpu"),
    }
    return [reason for reason, applies in checks.items() if applies]


def _workload(workload: WorkloadSpec) -> list[str]:
    if workload.precision in ("fp32", "bf16"):
        return []
    return [f"precision {workload.precision} is not run, only fp32 and bf16"]


def _sharding(layout: Layout, workload: WorkloadSpec) -> list[str]:
    reasons = []
    if layout.zero_stage == 1:
        reasons.append("zero_stage=1: FSDP2 shards gradients whenever it shards optimizer states; give zero_stage 2")
    if (layout.zero_stage == 0) != (layout.dp_shard == 1):
        reasons.append(f"zero_stage={layout.zero_stage} does not go with dp_shard={layout.dp_shard}")
    if layout.ep * layout.etp > 1:
        reasons.append(f"ep={layout.ep}, etp={layout.etp}: there are no experts")
    sequences = layout.micro_batch_size * layout.dp
    if workload.global_batch_size % sequences:
        reasons.append(
            f"global batch {workload.global_batch_size} is not a multiple of micro_batch_size·dp={sequences}"
        )
    if layout.cp > 1 and workload.sequence_length % (2 * layout.cp):
        reasons.append(f"sequence length {workload.sequence_length} is not a multiple of 2·cp={2 * layout.cp}")
    return reasons


def _tensor_parallel(layout: Layout, model: ModelSpec, workload: WorkloadSpec) -> list[str]:
    tp = layout.tp
    if tp == 1:
        return ["sequence_parallel needs tp > 1"] if layout.sequence_parallel else []
    widths = ("num_attention_heads", "num_key_value_heads", "intermediate_size")
    reasons = [f"tp={tp} does not divide {name}={getattr(model, name)}" for name in widths if getattr(model, name) % tp]
    tokens = workload.sequence_length // layout.cp
    if layout.sequence_parallel and tokens % tp:
        reasons.append(f"sequence_parallel: tp={tp} does not divide the {tokens} tokens of a cp rank")
    if layout.sequence_parallel and model.learned_positions:
        reasons.append("sequence_parallel with learned positions is not built; switch it off")
    return reasons


def _pipeline(layout: Layout, model: ModelSpec, workload: WorkloadSpec) -> list[str]:
    pp, vpp, name = layout.pp, layout.vpp, layout.schedule
    if pp == 1:
        return [f"vpp={vpp} needs pp > 1"] if vpp > 1 else []
    if not runs_schedule(name):
        return [f"schedule {name} is not in torch.distributed.pipelining"]
    facts = SCHEDULES[name]
    reasons = []
    if facts.fixed_vpp is not None and vpp != facts.fixed_vpp:
        reasons.append(f"schedule {name} has {facts.fixed_vpp} chunks on each rank, but vpp={vpp}")
    if facts.chunked and vpp == 1:
        reasons.append(f"schedule {name} needs vpp > 1")
    if pp * vpp > model.num_hidden_layers:
        reasons.append(f"pp·vpp={pp * vpp} stages, but only {model.num_hidden_layers} layers")
    return reasons + _micro_batches(layout, layout.num_microbatches(workload.global_batch_size))


def _micro_batches(layout: Layout, count: int) -> list[str]:
    """What torch's schedules raise ValueError for (torch 2.13, torch/distributed/pipelining/schedules.py)."""
    pp, name = layout.pp, layout.schedule
    if name == "1f1b" and count < pp:
        return [f"schedule 1f1b needs at least pp={pp} micro-batches, but there are {count}"]
    if name == "dualpipev" and count < 2 * pp:
        return [f"schedule dualpipev needs at least 2·pp={2 * pp} micro-batches, but there are {count}"]
    rounds = max(1, count // pp)
    if name in ("interleaved", "interleaved-zb") and count % rounds:
        return [
            f"schedule {name} needs micro-batches in equal rounds of pp={pp} or more, but {count} do not make {rounds}"
        ]
    return []
