"""Rules that many engines share but not all: an engine takes those that it demands.

Each takes `needs`, the clause that says who demands it ("torchtitan cannot cut a kv head"), which opens the sentence.
"""

import numpy as np

from autotune.space.divisors import divisors, nearest_multiples, one_of
from autotune.space.pipeline_rules import BATCH_AXES, batch_is_whole, schedule_at
from autotune.space.rules import Rule
from autotune.spec.layout import BoolColumn, LayoutTable, code_of
from autotune.spec.workload import Problem

FP8_TOKEN_MULTIPLE = 16
"""Of what the rows of an FP8 product are a multiple; TransformerEngine refuses others (NVIDIA-NeMo/Speech#8869)."""


def kv_heads_divide_tp(*, needs: str, replicated_when_fewer: bool = False) -> Rule:
    """The kv heads are a multiple of tp. Multi-head latent attention has none to divide.

    replicated_when_fewer: with more tp ranks than kv heads the engine copies each head, so the heads must divide tp.
    """

    def holds(table: LayoutTable, problem: Problem) -> BoolColumn:
        heads = problem.model.num_key_value_heads
        fits: BoolColumn = np.asarray(heads % table.tp == 0, dtype=np.bool_)
        if problem.model.mla is not None:
            return np.ones_like(fits)
        return fits | (table.tp % heads == 0) if replicated_when_fewer else fits

    def reason(table: LayoutTable, row: int, problem: Problem) -> str:
        heads = problem.model.num_key_value_heads
        limit = problem.cluster.gpus
        multiples = range(heads, limit + 1, heads) if replicated_when_fewer else ()
        possible = sorted({n for n in (*divisors(heads), *multiples) if problem.model.num_attention_heads % n == 0})
        return (
            f"{needs}: tp={table.tp[row]} does not fit num_key_value_heads={heads}; "
            f"tp can be {one_of(n for n in possible if n <= limit)}"
        )

    return Rule(code="tp-divides-kv-heads", axes=("tp",), holds=holds, reason=reason)


def even_stages(*, needs: str, spare_slots: int = 0) -> Rule:
    """Every stage has the same number of layers.

    spare_slots: how many places the embedding and the loss may take, each counted as a layer (2 in Megatron-LM with
    both --account-for-… flags: 94 layers make 96 places). Multi-token-prediction layers count as well then.
    """

    def slots(problem: Problem) -> range:
        extra = spare_slots + (problem.model.mtp_layers if spare_slots else 0)
        return range(problem.model.num_hidden_layers, problem.model.num_hidden_layers + extra + 1)

    def divides(problem: Problem, stages: int) -> bool:
        return any(places % stages == 0 for places in slots(problem))

    def holds(table: LayoutTable, problem: Problem) -> BoolColumn:
        stages = table.pp * table.vpp
        fits: BoolColumn = np.zeros(len(stages), dtype=np.bool_)
        for places in slots(problem):
            fits |= places % stages == 0
        return fits

    def reason(table: LayoutTable, row: int, problem: Problem) -> str:
        pp, vpp, layers = int(table.pp[row]), int(table.vpp[row]), problem.model.num_hidden_layers
        stages = pp * vpp
        chunks = [n for n in range(1, layers // pp + 1) if divides(problem, pp * n)]
        pipelines = [n for n in range(1, min(layers // vpp, problem.cluster.gpus) + 1) if divides(problem, n * vpp)]
        counted = (
            f" (nor with up to {slots(problem)[-1] - layers} places for embedding and loss)" if spare_slots else ""
        )
        return (
            f"{needs}: {layers} layers are not a multiple of pp·vpp = {pp}·{vpp} = {stages} stages{counted}; "
            f"{layers // stages} each would train {layers // stages * stages} layers; "
            f"with pp={pp} vpp can be {one_of(chunks)}, with vpp={vpp} pp can be {one_of(pipelines)}"
        )

    return Rule(code="even-stages", axes=("pp", "vpp"), holds=holds, reason=reason)


def micro_batches_fill_stages(*, needs: str, schedules: tuple[str, ...], per_chunk: bool = False) -> Rule:
    """At least as many micro-batches as pipeline ranks, or as stages with `per_chunk`, under the named schedules."""
    codes = tuple(code_of("schedule", name) for name in schedules)

    def holds(table: LayoutTable, problem: Problem) -> BoolColumn:
        stages = table.pp * table.vpp if per_chunk else table.pp
        enough = table.num_microbatches(problem.workload.global_batch_size) >= stages
        return enough | ~batch_is_whole(table, problem) | ~np.isin(table.schedule, codes)

    def reason(table: LayoutTable, row: int, problem: Problem) -> str:
        count = table.num_microbatches(problem.workload.global_batch_size)[row]
        pp, vpp = int(table.pp[row]), int(table.vpp[row])
        least = f"pp·vpp = {pp}·{vpp} = {pp * vpp}" if per_chunk else f"pp = {pp}"
        return (
            f"{needs}: schedule {schedule_at(table, row)} needs at least {least} micro-batches a step, but there are "
            f"{count}; lower pp, micro_batch_size or the data-parallel degree"
        )

    axes = ("pp", "schedule", *BATCH_AXES, *(("vpp",) if per_chunk else ()))
    return Rule(code="micro-batches-fill-stages", axes=axes, holds=holds, reason=reason)


def fp8_tokens_multiple(*, needs: str) -> Rule:
    """Under FP8 the tokens that one rank multiplies at once are a multiple of 16."""

    def holds(table: LayoutTable, problem: Problem) -> BoolColumn:
        local = table.micro_batch_size * (problem.workload.sequence_length // table.cp)
        fits: BoolColumn = np.asarray(local % FP8_TOKEN_MULTIPLE == 0, dtype=np.bool_)
        return fits if problem.workload.precision == "fp8" else np.ones_like(fits)

    def reason(table: LayoutTable, row: int, problem: Problem) -> str:
        micro, cp, length = table.micro_batch_size[row], int(table.cp[row]), problem.workload.sequence_length
        near = one_of(nearest_multiples(length, FP8_TOKEN_MULTIPLE * 2 * cp))
        return (
            f"{needs}: micro_batch_size·sequence/cp = {micro}·{length}/{cp} = {micro * (length // cp)} tokens a rank "
            f"are not a multiple of {FP8_TOKEN_MULTIPLE}; sequence lengths near it that work: {near}"
        )

    return Rule(code="fp8-tokens", axes=("cp", "micro_batch_size"), holds=holds, reason=reason)


def runs_schedules(schedules: tuple[str, ...], *, needs: str = "this engine") -> Rule:
    """The engine runs these schedules and no others."""
    codes = tuple(code_of("schedule", name) for name in schedules)
    return Rule(
        code="schedule-of-engine",
        axes=("schedule",),
        holds=lambda t, p: np.isin(t.schedule, codes),
        reason=lambda t, i, p: f"{needs} does not run schedule {schedule_at(t, i)}; it runs {one_of(schedules)}",
    )
