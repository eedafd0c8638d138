"""The layout of a measured run, in the words of our axes."""

import re

from autotune.spec.axes import AXIS_BY_NAME
from autotune.spec.cluster import ClusterSpec
from autotune.spec.layout import Layout
from autotune.spec.measured_cluster import gpus_of
from autotune.spec.measured_row import NotDescribedError, Row
from autotune.spec.measured_words import (
    RECOMPUTED_MODULES,
    SCHEDULE_NAMES,
    SCHEDULE_VARIANTS,
    Framework,
)
from autotune.spec.model import ModelSpec
from autotune.spec.schedules import SCHEDULES


def layout_of(row: Row, model: ModelSpec, cluster: ClusterSpec, framework: Framework) -> Layout:
    """The layout. Raises NotDescribedError where an axis is not known or says what no axis of ours can."""
    tp, pp, cp = row.needed("tp"), row.needed("pp"), row.whole("cp") or 1
    gpus = gpus_of(row)
    dp = row.whole("dp") or gpus // (tp * pp * cp)
    if tp * pp * cp * dp != gpus:
        message = f"tp·pp·cp·dp = {tp}·{pp}·{cp}·{dp} = {tp * pp * cp * dp} is not the {gpus} GPUs"
        raise NotDescribedError(message)
    zero_stage = zero_stage_of(row)
    replicate, shard = _data_parallel(row, cluster, dp, zero_stage)
    schedule, vpp = _schedule(row, pp, model.num_hidden_layers)
    mixture = model.moe is not None
    return Layout(
        tp=tp,
        pp=pp,
        vpp=vpp,
        cp=cp,
        dp_replicate=replicate,
        dp_shard=shard,
        ep=(row.whole("ep") or 1) if mixture else 1,
        etp=_expert_tp(row, tp, framework) if mixture else 1,
        # FSDP shards over cp too, so that with cp alone there still is something that a stage shards.
        zero_stage=zero_stage if shard > 1 or (cp > 1 and zero_stage == 3) else 0,
        sequence_parallel=tp > 1 and _sequence_parallel(row),
        micro_batch_size=row.needed("micro_batch"),
        schedule=schedule,
        recompute=recompute_of(row),
    )


def zero_stage_of(row: Row) -> int:
    """0 to 3; a sharded optimizer alone is stage 1."""
    stage, sharded = row.whole("zero_stage"), row.flag("optimizer_sharding")
    if stage is None and sharded is None:
        message = "what is sharded over data parallel ranks is not stated"
        raise NotDescribedError(message)
    return stage or int(sharded or False)


def recompute_of(row: Row) -> str:
    """None, selective or full."""
    text = row.text("recompute").lower()
    if not text:
        message = "recompute is not stated"
        raise NotDescribedError(message)
    kind = text.split(":")[0]
    if kind not in AXIS_BY_NAME["recompute"].choices:
        message = f"recompute '{text}' is none of {', '.join(map(str, AXIS_BY_NAME['recompute'].choices))}"
        raise NotDescribedError(message)
    return kind


def recomputed_modules_of(row: Row) -> tuple[str, ...] | None:
    """What "selective:a+b" computes again, in our words; None: what the engine means by selective."""
    kind, _, modules = row.text("recompute").lower().partition(":")
    if kind != "selective":
        return None
    words = [word for word in re.split(r"[+,]", modules) if word]
    if words and all(word in RECOMPUTED_MODULES for word in words):
        return tuple(sorted({RECOMPUTED_MODULES[word] for word in words}))
    row.note(f"recompute '{row.stated('recompute')}' is taken as what the engine itself means by selective")
    return None


def _data_parallel(row: Row, cluster: ClusterSpec, dp: int, zero_stage: int) -> tuple[int, int]:
    """(dp_replicate, dp_shard)."""
    if zero_stage == 0:
        return dp, 1
    shard = dp
    if row.word("sharding").upper() == "HSDP":
        shard = min(cluster.gpus_per_node, dp)
    elif row.mentions("multi_dist_optimizer_instances"):
        row.note("the optimizer is taken to have two instances, as Megatron-LM's test of that name")
        shard = dp // 2 if dp % 2 == 0 else dp
    if dp % shard:
        message = f"dp={dp} is not a multiple of the {shard} ranks that share the states"
        raise NotDescribedError(message)
    return dp // shard, shard


def _schedule(row: Row, pp: int, layers: int) -> tuple[str, int]:
    """Our name of the schedule, and chunks per rank."""
    name = row.text("pp_schedule").lower()
    if pp == 1:
        return "1f1b", 1
    for word, difference in SCHEDULE_VARIANTS.items():
        if word in name:
            message = f"the schedule '{name}' {difference}"
            raise NotDescribedError(message)
    ours = SCHEDULE_NAMES.get(name)
    if ours is None:
        message = f"the schedule '{name}' has no name of ours"
        raise NotDescribedError(message)
    stated = row.whole("vpp")
    if stated is None and ours == "interleaved":
        stated = _only_chunks(row, pp, layers)
    if ours in ("interleaved", "1f1b") and stated is not None:
        return ("interleaved", stated) if stated > 1 else ("1f1b", 1)
    fixed = SCHEDULES[ours].fixed_vpp
    if fixed is None and stated is None:
        message = f"vpp is not stated, and {ours} does not imply it"
        raise NotDescribedError(message)
    return ours, fixed or stated or 1


def _only_chunks(row: Row, pp: int, layers: int) -> int | None:
    """Chunks per rank of an interleaved run that does not print them, where only one number is possible."""
    each = row.whole("layers_per_chunk")
    if each is not None:
        return -(-layers // (pp * each))
    per_rank = layers // pp
    if layers % pp or any(per_rank % divisor == 0 for divisor in range(2, per_rank)):
        return None
    row.note(f"vpp is taken as {per_rank}, the only way to interleave {layers} layers over pp={pp}")
    return per_rank


def _expert_tp(row: Row, tp: int, framework: Framework) -> int:
    for key in ("expert_tp", "etp", "expert-tensor-parallel-size"):
        if row.word(key).isdecimal():
            return int(row.word(key))
    return tp if framework.expert_tensor_parallel else 1


def _sequence_parallel(row: Row) -> bool:
    stated = row.flag("seq_parallel")
    if stated is None:
        row.note("sequence parallelism is not stated and taken as off")
    return bool(stated)
