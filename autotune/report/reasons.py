"""Why a legal layout has its verdict, as sentences with both numbers and the way out."""

from collections.abc import Iterator
from typing import Final

from autotune.report.scored import ScoredTable
from autotune.space.rules import Reason
from autotune.spec.outcome import Failed, TrialResult
from autotune.spec.verdict import Verdict
from autotune.units import format_bytes

_STATES: Final = "raise dp_shard with a higher zero_stage, or pp or tp"
_WAY_OUT: Final = {
    "weights": _STATES,
    "gradients": _STATES,
    "optimizer": _STATES,
    "gathered_weights": "raise tp or pp, or lower zero_stage",
    "activations": "recompute more, halve micro_batch_size, or raise tp with sequence_parallel or cp",
    "recompute": "halve micro_batch_size, or raise tp with sequence_parallel or cp",
    "logits": "halve micro_batch_size, or raise tp or cp",
    "buffers": _STATES,
    "outside": "use fewer and smaller communication groups",
}
"""What lowers a part, by its name."""


def verdict_reasons(scored: ScoredTable, row: int, verdict: Verdict, result: TrialResult | None) -> tuple[Reason, ...]:
    """The reasons behind a verdict of the row; none where it fits."""
    match verdict:
        case Verdict.DOES_NOT_FIT | Verdict.BORDERLINE:
            return tuple(_memory_reasons(scored, row))
        case Verdict.OUT_OF_MEMORY | Verdict.FAILED if isinstance(result, Failed):
            return (Reason(code=result.status.value, axes=(), message=result.evidence),)
        case _:
            return ()


def _memory_reasons(scored: ScoredTable, row: int) -> Iterator[Reason]:
    peak_bytes, upper_bytes = float(scored.peak_bytes[row]), float(scored.upper_bytes[row])
    limit = format_bytes(scored.limit_bytes)
    stage = f"the fullest stage ({int(scored.estimates.fullest_stage[row])})"
    if peak_bytes > scored.limit_bytes:
        part, size_bytes = _largest_part(scored, row)
        excess = format_bytes(peak_bytes - scored.limit_bytes)
        yield Reason(
            code="memory-limit",
            axes=(),
            message=(
                f"{stage} needs {format_bytes(peak_bytes)}, {excess} more than the {limit} that a process may use; its "
                f"largest part is {part} with {format_bytes(size_bytes)}: {_WAY_OUT.get(part, _STATES)}"
            ),
        )
    elif upper_bytes > scored.limit_bytes:
        yield Reason(
            code="memory-upper-bound",
            axes=(),
            message=(
                f"{stage} is predicted at {format_bytes(peak_bytes)} and may need up to {format_bytes(upper_bytes)}; a "
                f"process may use {limit}, so only a run can tell"
            ),
        )
    host_bytes = float(scored.estimates.host_bytes[row])
    host_limit_bytes = scored.problem.cluster.host_memory_bytes.value
    if host_bytes > host_limit_bytes:
        yield Reason(
            code="host-memory",
            axes=(),
            message=(
                f"the processes of one node need {format_bytes(host_bytes)} of its RAM, a node of "
                f"{scored.problem.cluster.name} has {format_bytes(host_limit_bytes)}; raise pp or tp, so that each "
                "process holds less"
            ),
        )


def _largest_part(scored: ScoredTable, row: int) -> tuple[str, float]:
    parts = {name: float(column[row]) for name, column in scored.estimates.memory.parts.items()}
    name = max(parts, key=parts.__getitem__)
    return name, parts[name]
