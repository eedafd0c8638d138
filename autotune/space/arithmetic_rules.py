"""COMMON_RULES: the rules of arithmetic that hold whatever engine trains, each said once.

What only some engines demand (even stages, kv heads …) is in `optional_rules.py`.
"""

from autotune.space.divisors import divisors, nearest_multiples, one_of
from autotune.space.pipeline_rules import PIPELINE_RULES
from autotune.space.rules import Rule
from autotune.spec.layout import BoolColumn, IntColumn, LayoutTable
from autotune.spec.model import ModelSpec
from autotune.spec.workload import Problem

DEGREES = ("tp", "cp", "pp", "dp_replicate", "dp_shard")
"""The axes whose product is the number of GPUs."""


def _gpus_reason(table: LayoutTable, row: int, problem: Problem) -> str:
    factors = "·".join(str(getattr(table, name)[row]) for name in DEGREES)
    cluster = problem.cluster
    return (
        f"{'·'.join(DEGREES)} = {factors} = {table.gpus[row]} GPUs, but {cluster.name} has {cluster.gpus}; "
        f"lower a degree or take more nodes"
    )


def _heads_reason(table: LayoutTable, row: int, problem: Problem) -> str:
    heads = problem.model.num_attention_heads
    return (
        f"tp={table.tp[row]} does not divide num_attention_heads={heads} of {problem.model.name}; "
        f"{_tp_can_be(problem, heads)}"
    )


def _tp_can_be(problem: Problem, *widths: int) -> str:
    possible = [tp for tp in range(1, problem.cluster.gpus + 1) if all(width % tp == 0 for width in widths)]
    return f"tp can be {one_of(possible)}, and other GPUs go to pp or dp"


def _widths_split_by_tp(model: ModelSpec) -> dict[str, int]:
    """MLP widths that tensor parallelism cuts, by name; routed experts are cut by etp instead."""
    moe = model.moe
    widths = {}
    if moe is None or moe.dense_layers > 0 or moe.moe_layer_frequency > 1:
        widths["intermediate_size"] = model.intermediate_size
    if moe is not None and moe.shared_intermediate_size > 0:
        widths["shared_intermediate_size"] = moe.shared_intermediate_size
    return widths


def _widths_hold(table: LayoutTable, problem: Problem) -> BoolColumn:
    holds: BoolColumn = table.tp > 0
    for width in _widths_split_by_tp(problem.model).values():
        holds = holds & (width % table.tp == 0)
    return holds


def _widths_reason(table: LayoutTable, row: int, problem: Problem) -> str:
    widths = _widths_split_by_tp(problem.model)
    wrong = " and ".join(f"{name}={width}" for name, width in widths.items() if width % table.tp[row])
    return (
        f"tp={table.tp[row]} does not divide {wrong} of {problem.model.name}; "
        f"{_tp_can_be(problem, problem.model.num_attention_heads, *widths.values())}"
    )


def _cp_reason(table: LayoutTable, row: int, problem: Problem) -> str:
    length = problem.workload.sequence_length
    return (
        f"cp={table.cp[row]} cuts a sequence into 2·cp = {2 * table.cp[row]} equal pieces (causal load balance), but "
        f"the sequence length {length} is not a multiple of that; {_lengths(length, 2 * int(table.cp[row]))}"
    )


def _sp_length_reason(table: LayoutTable, row: int, problem: Problem) -> str:
    tp, cp, length = int(table.tp[row]), int(table.cp[row]), problem.workload.sequence_length
    return (
        f"sequence_parallel cuts the {length} tokens of a sequence into cp·tp = {cp}·{tp} = {cp * tp} equal pieces, "
        f"which does not divide; {_lengths(length, cp * tp)}, or switch sequence_parallel off"
    )


def _lengths(length: int, step: int) -> str:
    return f"sequence lengths near it that work: {one_of(nearest_multiples(length, step))}"


def _batch_reason(table: LayoutTable, row: int, problem: Problem) -> str:
    micro, replicate, shard = table.micro_batch_size[row], table.dp_replicate[row], table.dp_shard[row]
    batch, step = problem.workload.global_batch_size, int(micro * replicate * shard)
    return (
        f"global batch {batch} is not a multiple of micro_batch_size·dp_replicate·dp_shard = "
        f"{micro}·{replicate}·{shard} = {step}; "
        f"global batches near it that work: {one_of(nearest_multiples(batch, step))}"
    )


def _zero_reason(table: LayoutTable, row: int, problem: Problem) -> str:
    zero, shard = table.zero_stage[row], table.dp_shard[row]
    if zero == 0:
        return (
            f"dp_shard={shard} with zero_stage=0 shards nothing; give zero_stage 1, 2 or 3, or move the {shard} ranks "
            f"to dp_replicate"
        )
    return f"zero_stage={zero} has nothing to shard over with dp_shard=1; give dp_shard more than 1, or zero_stage=0"


def _dense_reason(table: LayoutTable, row: int, problem: Problem) -> str:
    return (
        f"ep={table.ep[row]} and etp={table.etp[row]} split experts, but {problem.model.name} is dense (0 experts); "
        f"both must be 1"
    )


def _experts(problem: Problem) -> int:
    return problem.model.moe.num_experts if problem.model.moe else 0


def _expert_width(problem: Problem) -> int:
    return problem.model.moe.expert_intermediate_size if problem.model.moe else 0


def _ep_reason(table: LayoutTable, row: int, problem: Problem) -> str:
    possible = [ep for ep in divisors(_experts(problem)) if ep <= problem.cluster.gpus]
    return f"ep={table.ep[row]} does not divide num_experts={_experts(problem)}; ep can be {one_of(possible)}"


def _etp_reason(table: LayoutTable, row: int, problem: Problem) -> str:
    possible = [etp for etp in divisors(_expert_width(problem)) if etp <= problem.cluster.gpus]
    return (
        f"etp={table.etp[row]} does not divide the expert width {_expert_width(problem)}; etp can be {one_of(possible)}"
    )


def _stage_ranks(table: LayoutTable) -> IntColumn:
    """Ranks of one pipeline stage, which the experts share out among themselves."""
    return table.tp * table.cp * table.dp


def _fold_reason(table: LayoutTable, row: int, problem: Problem) -> str:
    ep, etp, ranks = int(table.ep[row]), int(table.etp[row]), int(_stage_ranks(table)[row])
    legal = [n for n in divisors(_experts(problem)) if ranks % (n * etp) == 0]
    way_out = f"with etp={etp} ep can be at most {max(legal)}" if legal else f"etp={etp} alone does not divide {ranks}"
    factors = "·".join(str(getattr(table, name)[row]) for name in ("tp", "cp", "dp_replicate", "dp_shard"))
    return (
        f"etp·ep = {etp}·{ep} = {etp * ep} does not divide the tp·cp·dp_replicate·dp_shard = {factors} = {ranks} "
        f"ranks of a pipeline stage; {way_out}"
    )


COMMON_RULES: tuple[Rule, ...] = (
    Rule(
        code="gpus-available",
        axes=DEGREES,
        holds=lambda t, p: t.gpus <= p.cluster.gpus,
        reason=_gpus_reason,
    ),
    Rule(
        code="tp-divides-heads",
        axes=("tp",),
        holds=lambda t, p: p.model.num_attention_heads % t.tp == 0,
        reason=_heads_reason,
    ),
    Rule(code="tp-divides-mlp", axes=("tp",), holds=_widths_hold, reason=_widths_reason),
    Rule(
        code="cp-divides-sequence",
        axes=("cp",),
        holds=lambda t, p: (t.cp == 1) | (p.workload.sequence_length % (2 * t.cp) == 0),
        reason=_cp_reason,
    ),
    Rule(
        code="sequence-parallel-needs-tp",
        axes=("tp", "sequence_parallel"),
        holds=lambda t, p: (t.tp > 1) | ~t.sequence_parallel,
        reason=lambda t, i, p: (
            "sequence_parallel splits over tp ranks, but tp=1; switch it off, or give tp more than 1"
        ),
        canonical=True,
    ),
    Rule(
        code="sequence-parallel-divides-sequence",
        axes=("tp", "cp", "sequence_parallel"),
        holds=lambda t, p: ~t.sequence_parallel | (p.workload.sequence_length % (t.cp * t.tp) == 0),
        reason=_sp_length_reason,
    ),
    Rule(
        code="zero-stage-needs-shards",
        axes=("dp_shard", "zero_stage"),
        holds=lambda t, p: (t.zero_stage == 0) == (t.dp_shard == 1),
        reason=_zero_reason,
        canonical=True,
    ),
    Rule(
        code="dense-has-no-experts",
        axes=("ep", "etp"),
        holds=lambda t, p: (t.ep * t.etp == 1) | (p.model.moe is not None),
        reason=_dense_reason,
        canonical=True,
    ),
    Rule(
        code="ep-divides-experts",
        axes=("ep",),
        holds=lambda t, p: _experts(p) % t.ep == 0,
        reason=_ep_reason,
    ),
    Rule(
        code="etp-divides-expert-width",
        axes=("etp",),
        holds=lambda t, p: _expert_width(p) % t.etp == 0,
        reason=_etp_reason,
    ),
    Rule(
        code="experts-divide-ranks",
        axes=("tp", "cp", "dp_replicate", "dp_shard", "ep", "etp"),
        holds=lambda t, p: (p.model.moe is None) | (_stage_ranks(t) % (t.ep * t.etp) == 0),
        reason=_fold_reason,
    ),
    Rule(
        code="batch-divides",
        axes=("micro_batch_size", "dp_replicate", "dp_shard"),
        holds=lambda t, p: p.workload.global_batch_size % (t.micro_batch_size * t.dp) == 0,
        reason=_batch_reason,
    ),
    *PIPELINE_RULES,
)
