"""PIPELINE_RULES: what stages, chunks and each schedule need, whoever runs them. The facts are in `spec.schedules`."""

import numpy as np

from autotune.space.divisors import one_of
from autotune.space.rules import Rule
from autotune.spec.axes import AXIS_BY_NAME
from autotune.spec.layout import BoolColumn, IntColumn, LayoutTable, code_of, value_of
from autotune.spec.schedules import SCHEDULES, ScheduleFacts
from autotune.spec.workload import Problem

BATCH_AXES = ("micro_batch_size", "dp_replicate", "dp_shard")
"""The axes that decide the number of micro-batches."""


def schedule_at(table: LayoutTable, row: int) -> str:
    """The name of a row's schedule."""
    return str(value_of("schedule", int(table.schedule[row])))


def batch_is_whole(table: LayoutTable, problem: Problem) -> BoolColumn:
    """Where the global batch is a whole number of micro-batches; elsewhere their number means nothing."""
    return np.asarray(problem.workload.global_batch_size % (table.micro_batch_size * table.dp) == 0, dtype=np.bool_)


def _facts(table: LayoutTable, row: int) -> ScheduleFacts:
    return SCHEDULES[schedule_at(table, row)]


def _fact_column(table: LayoutTable, name: str) -> IntColumn:
    """One fact of each row's schedule; `fixed_vpp` None becomes 0."""
    choices = AXIS_BY_NAME["schedule"].choices
    facts: IntColumn = np.array([int(getattr(SCHEDULES[str(choice)], name) or 0) for choice in choices], dtype=np.int64)
    return facts[table.schedule]


def _micro_batches(table: LayoutTable, problem: Problem) -> IntColumn:
    return table.num_microbatches(problem.workload.global_batch_size)


def _default_schedule() -> int:
    return code_of("schedule", AXIS_BY_NAME["schedule"].off)


def _stages_reason(table: LayoutTable, row: int, problem: Problem) -> str:
    pp, vpp, layers = int(table.pp[row]), int(table.vpp[row]), problem.model.num_hidden_layers
    way_out = f"with pp={pp} vpp is at most {layers // pp}" if pp <= layers else f"pp is at most {layers}"
    return (
        f"pp·vpp = {pp}·{vpp} = {pp * vpp} stages, but {problem.model.name} has {layers} layers and each stage needs "
        f"one; {way_out}"
    )


def _fixed_vpp_reason(table: LayoutTable, row: int, problem: Problem) -> str:
    vpp, fixed, name = table.vpp[row], _facts(table, row).fixed_vpp, schedule_at(table, row)
    if fixed != 1:
        return f"schedule {name} has {fixed} chunks on each rank, but vpp={vpp}; give vpp={fixed}"
    free = [other for other, facts in SCHEDULES.items() if facts.fixed_vpp is None]
    return f"schedule {name} has 1 chunk on each rank, but vpp={vpp}; give vpp=1, or the schedule {one_of(free)}"


def _micro_batches_reason(table: LayoutTable, row: int, problem: Problem) -> str:
    count, pp, name = int(_micro_batches(table, problem)[row]), int(table.pp[row]), schedule_at(table, row)
    return (
        f"schedule {name} runs micro-batches in groups of pp={pp}, but the {count} micro-batches of a step are not a "
        f"multiple of {pp}; {_fewer_or_more(table, row, problem, pp)}"
    )


def _too_few_reason(table: LayoutTable, row: int, problem: Problem) -> str:
    count, pp = int(_micro_batches(table, problem)[row]), int(table.pp[row])
    times = _facts(table, row).min_micro_batches_per_stage
    return (
        f"schedule {schedule_at(table, row)} needs at least {times}·pp = {times * pp} micro-batches a step, but there "
        f"are {count}; lower pp, micro_batch_size or the data-parallel degree"
    )


def _fewer_or_more(table: LayoutTable, row: int, problem: Problem, multiple: int) -> str:
    sequences = problem.workload.global_batch_size // int(table.dp[row])
    fitting = [size for size in range(1, sequences // multiple + 1) if sequences % (size * multiple) == 0]
    if fitting:
        return f"micro_batch_size can be {one_of(fitting)}"
    return f"no micro_batch_size helps, since a replica has {sequences} sequences a step; change pp or the dp degrees"


PIPELINE_RULES: tuple[Rule, ...] = (
    Rule(
        code="layers-fill-stages",
        axes=("pp", "vpp"),
        holds=lambda t, p: t.pp * t.vpp <= p.model.num_hidden_layers,
        reason=_stages_reason,
    ),
    Rule(
        code="chunks-need-pipeline",
        axes=("pp", "vpp"),
        holds=lambda t, p: (t.pp > 1) | (t.vpp == 1),
        reason=lambda t, i, p: f"vpp={t.vpp[i]} splits pipeline stages, but pp=1; give vpp=1, or pp more than 1",
        canonical=True,
    ),
    Rule(
        code="schedule-needs-pipeline",
        axes=("pp", "schedule"),
        holds=lambda t, p: (t.pp > 1) | (t.schedule == _default_schedule()),
        reason=lambda t, i, p: (
            f"schedule {schedule_at(t, i)} orders pipeline stages, but pp=1; leave it at "
            f"{AXIS_BY_NAME['schedule'].off}, or give pp more than 1"
        ),
        canonical=True,
    ),
    Rule(
        code="schedule-fixes-chunks",
        axes=("vpp", "schedule"),
        holds=lambda t, p: (_fact_column(t, "fixed_vpp") == 0) | (t.vpp == _fact_column(t, "fixed_vpp")),
        reason=_fixed_vpp_reason,
    ),
    Rule(
        code="schedule-needs-chunks",
        axes=("vpp", "schedule"),
        holds=lambda t, p: (_fact_column(t, "chunked") == 0) | (_fact_column(t, "fixed_vpp") > 0) | (t.vpp > 1),
        reason=lambda t, i, p: (
            f"schedule {schedule_at(t, i)} needs more than one chunk on each rank, but vpp={t.vpp[i]}; give vpp 2 or "
            f"more, or schedule 1f1b"
        ),
    ),
    Rule(
        code="schedule-needs-even-pp",
        axes=("pp", "schedule"),
        holds=lambda t, p: (_fact_column(t, "even_pp") == 0) | (t.pp % 2 == 0),
        reason=lambda t, i, p: f"schedule {schedule_at(t, i)} needs an even pp, but pp={t.pp[i]}",
    ),
    Rule(
        code="micro-batches-multiple-of-pp",
        axes=("pp", "schedule", *BATCH_AXES),
        holds=lambda t, p: (
            (_fact_column(t, "micro_batches_multiple_of_pp") == 0)
            | ~batch_is_whole(t, p)
            | (_micro_batches(t, p) % t.pp == 0)
        ),
        reason=_micro_batches_reason,
    ),
    Rule(
        code="micro-batches-enough",
        axes=("pp", "schedule", *BATCH_AXES),
        holds=lambda t, p: (
            ~batch_is_whole(t, p) | (_micro_batches(t, p) >= _fact_column(t, "min_micro_batches_per_stage") * t.pp)
        ),
        reason=_too_few_reason,
    ),
)
