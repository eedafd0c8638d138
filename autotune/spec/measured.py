"""MeasuredRun: a training run that somebody published, in our words; `read_runs` reads a CSV of them.

One row a run, one column a fact, blank for what was not published. source, run_id; the model (model, hidden, layers,
heads, kv_heads, ffn, vocab, seq, gated_mlp, tied_embeddings, moe_experts, moe_topk, moe_ffn); the machines (gpu, gpus,
gpus_per_node, intra_gbps and inter_gbps per GPU and direction); precision, framework, attention_kernel; the batch in
sequences (global_batch, micro_batch, grad_accum); the layout (tp, pp, vpp, cp, ep, dp, seq_parallel, zero_stage,
optimizer_sharding, recompute, pp_schedule); what was seen (step_time_s, tokens_per_s_per_gpu, tflops_per_gpu, mfu,
peak_memory_gib with memory_kind, oom); notes with key=value, suspect, source_ref, use.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Final, Literal

from autotune.spec.layout import Layout
from autotune.spec.measured_cluster import cluster_of, gpus_of
from autotune.spec.measured_layout import layout_of, recomputed_modules_of, zero_stage_of
from autotune.spec.measured_model import model_of
from autotune.spec.measured_row import Assumed, NotDescribedError, Row, read_rows
from autotune.spec.measured_words import (
    OUT_OF_REACH,
    PASSED_OVER,
    attention_of,
    framework_of,
    precision_of,
)
from autotune.spec.workload import Attention, GradientDtype, Precision, Problem, WorkloadSpec
from autotune.units import GB, GIB

Assumptions = Mapping[str, Mapping[str, Assumed]]
"""What is taken for blank cells: by source, then by column."""


class MemoryKind(StrEnum):
    """What a printed peak counts: tensors; what the allocator holds; all that the device has in use; not known."""

    ALLOCATED = "allocated"
    RESERVED = "reserved"
    DEVICE = "device"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True, slots=True)
class SweepKey:
    """Runs that differ in their layouts alone share this; texts are as printed."""

    source: str
    model: str
    sequence_length: int
    global_batch_size: int
    precision: str
    gpu: str
    gpus: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Throughput:
    """What a source prints beside the step time, or in place of it; None: not printed."""

    tokens_per_s_per_gpu: float | None
    tflops_per_gpu: float | None
    mfu: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasuredRun:
    """A run, and what was seen of it; None: not published.

    engines: whose habits describe the framework, best first; recomputed_modules: what selective recomputation computes
    again, None: the engine's own; step_time_s: as printed, or from tokens per second; memory_rank: the rank that was
    read; oom: ran out of memory or did not; fully_described: batch, micro-batch and recompute are in the row itself;
    time_counts: the step time may be scored; notes: what was assumed or passed over.
    """

    run_id: str
    source: str
    problem: Problem
    layout: Layout
    framework: str
    engines: tuple[str, ...]
    recomputed_modules: tuple[str, ...] | None
    sweep: SweepKey
    step_time_s: float | None
    throughput: Throughput
    time_counts: bool
    peak_memory_bytes: float | None
    memory_kind: MemoryKind
    memory_rank: Literal["fullest", "last", "one"]
    oom: bool | None
    suspect: bool
    fully_described: bool
    notes: tuple[str, ...]
    source_ref: str


@dataclass(frozen=True, kw_only=True, slots=True)
class SkippedRun:
    """A row that cannot become a prediction, and why."""

    run_id: str
    source: str
    reason: str
    fully_described: bool


_MEMORY_UNITS: Final = {"GiB": GIB, "GB": GB}


def read_runs(path: Path, assumed: Assumptions | None = None) -> tuple[list[MeasuredRun], list[SkippedRun]]:
    """The runs of a CSV, and the rows that do not say enough. Raises InputError with all faults of the file."""
    runs: list[MeasuredRun] = []
    skipped: list[SkippedRun] = []
    for row in read_rows(path, assumed or {}):
        try:
            runs.append(_run(row))
        except NotDescribedError as reason:
            skipped.append(
                SkippedRun(
                    run_id=row.stated("run_id"),
                    source=row.stated("source"),
                    reason=str(reason),
                    fully_described=_fully_described(row),
                )
            )
    return runs, skipped


def _run(row: Row) -> MeasuredRun:
    _refuse_what_is_out_of_reach(row)
    framework = framework_of(row.stated("framework"), zero_stage_of(row))
    if framework.engines[0] not in row.stated("framework").lower():
        row.note(f"'{row.stated('framework')}' is read as {framework.engines[-1]}: {framework.reason}")
    model, cluster = model_of(row), cluster_of(row)
    layout = layout_of(row, model, cluster, framework)
    workload = _workload(row, layout)
    kind = _memory_kind(row)
    peak, unit = row.number("peak_memory_gib"), row.text("memory_unit") or "GiB"
    return MeasuredRun(
        run_id=row.stated("run_id"),
        source=row.stated("source"),
        problem=Problem(model=model, cluster=cluster, workload=workload),
        layout=layout,
        framework=row.stated("framework"),
        engines=framework.engines,
        recomputed_modules=recomputed_modules_of(row),
        sweep=SweepKey(
            source=row.stated("source"),
            model=row.stated("model"),
            sequence_length=workload.sequence_length,
            global_batch_size=workload.global_batch_size,
            precision=row.stated("precision"),
            gpu=row.stated("gpu"),
            gpus=gpus_of(row),
        ),
        step_time_s=_step_time_s(row, workload),
        throughput=Throughput(
            tokens_per_s_per_gpu=row.number("tokens_per_s_per_gpu"),
            tflops_per_gpu=row.number("tflops_per_gpu"),
            mfu=row.number("mfu"),
        ),
        time_counts=row.stated("use") != "memory_only",
        peak_memory_bytes=None if peak is None else peak * _MEMORY_UNITS[unit],
        memory_kind=kind,
        memory_rank=_memory_rank(row),
        oom=row.flag("oom"),
        suspect=is_suspect(row),
        fully_described=_fully_described(row),
        notes=tuple(row.notes),
        source_ref=row.stated("source_ref"),
    )


def is_suspect(row: Row) -> bool:
    """Whether the file itself warns of the figures."""
    return bool(row.flag("suspect")) or row.mentions("SUSPECT") or row.mentions("UNSTABLE")


def _refuse_what_is_out_of_reach(row: Row) -> None:
    for column, words, reason in OUT_OF_REACH:
        if words in row.stated(column).lower():
            raise NotDescribedError(reason)
    for words, sentence in PASSED_OVER:
        if row.mentions(words):
            row.note(sentence)


def _fully_described(row: Row) -> bool:
    return not is_suspect(row) and all(row.stated(name) for name in ("global_batch", "micro_batch", "recompute"))


def _workload(row: Row, layout: Layout) -> WorkloadSpec:
    precision = _precision(row)
    return WorkloadSpec(
        sequence_length=row.needed("seq"),
        global_batch_size=_global_batch_size(row, layout),
        precision=precision,
        gradient_dtype=_gradient_dtype(row, precision),
        attention=_attention(row),
    )


def _precision(row: Row) -> Precision:
    text = row.text("precision")
    if not text:
        message = "the precision is not stated"
        raise NotDescribedError(message)
    precision = precision_of(text)
    if precision is None:
        message = f"the precision '{text}' has no word of ours"
        raise NotDescribedError(message)
    return precision


def _gradient_dtype(row: Row, precision: Precision) -> GradientDtype:
    """Two bytes where gradients are accumulated as the weights are: fp16 runs, and FSDP that is all bf16."""
    two_bytes = precision == "fp16" or row.word("mp_mode") == "PURE"
    if precision == "fp16":
        row.note("gradients are taken as fp16, which Megatron-LM and DeepSpeed accumulate in unless told otherwise")
    return "bf16" if two_bytes else "fp32"


def _attention(row: Row) -> Attention:
    attention = attention_of(row.text("attention_kernel"))
    if attention is None:
        row.note("the attention kernel is not stated and taken as fused")
    return attention or "flash"


def _global_batch_size(row: Row, layout: Layout) -> int:
    """Sequences of a step: what micro-batches and their number make, where a source labels it otherwise."""
    stated, accumulated = row.whole("global_batch"), row.whole("grad_accum")
    product = accumulated * layout.micro_batch_size * layout.dp if accumulated else None
    if stated is None and product is None:
        message = "global_batch is not stated"
        raise NotDescribedError(message)
    if stated is not None and product is not None and stated != product:
        row.note(f"the global batch is the {product} that ran, not the {stated} of the label")
    return product or stated or 0


def _step_time_s(row: Row, workload: WorkloadSpec) -> float | None:
    stated, rate = row.number("step_time_s"), row.number("tokens_per_s_per_gpu")
    if stated is not None or rate is None:
        return stated
    return workload.tokens_per_step / (rate * gpus_of(row))


def _memory_kind(row: Row) -> MemoryKind:
    text = row.text("memory_kind").lower()
    if "allocated or reserved" in text:
        row.note(
            "the printed peak is allocated or reserved; taken as allocated, since none comes near the GPU's memory"
        )
    for kind in (MemoryKind.ALLOCATED, MemoryKind.RESERVED, MemoryKind.DEVICE):
        if kind.value in text:
            return kind
    if "max over devices" in text:
        row.note("the printed peak is taken as allocated tensors, the figure that Megatron-LM logs")
        return MemoryKind.ALLOCATED
    return MemoryKind.UNKNOWN


def _memory_rank(row: Row) -> Literal["fullest", "last", "one"]:
    text = row.text("memory_kind").lower()
    return "last" if "last rank" in text else "one" if "one rank" in text else "fullest"


def with_step_time(run: MeasuredRun, step_time_s: float, note: str) -> MeasuredRun:
    """The run with a step time that was worked out from what it prints."""
    return replace(run, step_time_s=step_time_s, notes=(*run.notes, note))
