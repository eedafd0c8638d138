"""Builds any schedule by name, after checking that it exists at the size that is asked for."""

import difflib
from collections.abc import Callable
from typing import Final

from autotune.cost.pipeline.bidirectional import bitpipe, chimera
from autotune.cost.pipeline.chronos import chronos
from autotune.cost.pipeline.dualpipe import dualpipe, dualpipe_v
from autotune.cost.pipeline.hanayo import hanayo
from autotune.cost.pipeline.interleaved import breadth_first, interleaved, interleaved_zero_bubble
from autotune.cost.pipeline.one_chunk import gpipe, one_forward_one_backward, sequence_sliced
from autotune.cost.pipeline.operations import Schedule
from autotune.cost.pipeline.shape import Shape
from autotune.cost.pipeline.v_shaped import v_half, v_min, zb_v
from autotune.cost.pipeline.zero_bubble import zb_h1, zb_h2
from autotune.cost.schedules import SEQ1F1B_SLICES
from autotune.errors import Fault, InputError
from autotune.spec.schedules import SCHEDULES, ScheduleFacts

BUILDERS: Final[dict[str, Callable[[Shape], Schedule]]] = {
    "gpipe": gpipe,
    "1f1b": one_forward_one_backward,
    "interleaved": interleaved,
    "breadth-first": breadth_first,
    "chimera": chimera,
    "hanayo": hanayo,
    "bitpipe": bitpipe,
    "interleaved-zb": interleaved_zero_bubble,
    "zb-h1": zb_h1,
    "zb-h2": zb_h2,
    "zb-v": zb_v,
    "v-half": v_half,
    "v-min": v_min,
    "dualpipe": dualpipe,
    "dualpipev": dualpipe_v,
    "seq1f1b": sequence_sliced,
    "chronos": chronos,
}

_WHERE: Final = "schedule"


def build(
    name: str,
    *,
    pp: int,
    micro_batches: int,
    vpp: int | None = None,
    parts: int | None = None,
    waves: int | None = None,
    recomputed_chunks: int = 0,
) -> Schedule:
    """The operation table of a schedule.

    micro_batches: of a step, in both directions together; vpp: chunks of each rank, by default the fewest that the
    schedule has; parts: slices of a sequence (seq1f1b); waves: hanayo's, two chunks each; recomputed_chunks: chronos'
    shallowest. The order does not depend on what the stages cost. Raises InputError with all faults.
    """
    if name not in BUILDERS:
        close = difflib.get_close_matches(name, BUILDERS, n=1)
        hint = f"did you mean '{close[0]}'?" if close else f"known are {', '.join(BUILDERS)}"
        raise InputError.one(f"there is no schedule '{name}'; {hint}", where=_WHERE, key="name")
    chunks = chunks_of(name, vpp=vpp, waves=waves)
    faults = [
        *_size_faults(name, pp=pp, micro_batches=micro_batches),
        *_chunk_faults(name, vpp=vpp, chunks=chunks),
        *_option_faults(name, parts=parts, waves=waves, recomputed_chunks=recomputed_chunks, chunks=chunks),
    ]
    if faults:
        raise InputError(faults)
    shape = Shape(
        pp=pp,
        micro_batches=micro_batches,
        chunks=chunks,
        parts=_parts_of(name, parts),
        recomputed_chunks=recomputed_chunks,
    )
    return BUILDERS[name](shape)


def chunks_of(name: str, *, vpp: int | None = None, waves: int | None = None) -> int:
    """Stages of one replica on each rank: given, or the fewest that the schedule has."""
    if waves is not None and name == "hanayo":
        return 2 * waves
    fixed = SCHEDULES[name].fixed_vpp
    if fixed is not None:
        return fixed
    return 2 if vpp is None else vpp


def _parts_of(name: str, parts: int | None) -> int:
    if name != "seq1f1b":
        return 1
    return SEQ1F1B_SLICES if parts is None else parts


def _size_faults(name: str, *, pp: int, micro_batches: int) -> list[Fault]:
    facts = SCHEDULES[name]
    found = []
    if pp < 1:
        found.append(_fault("pp", f"pp={pp}, at least 1 is needed"))
    if micro_batches < 1:
        found.append(_fault("micro_batches", f"{micro_batches} micro-batches, at least 1 is needed"))
    return found or _misfits(name, facts, pp=pp, micro_batches=micro_batches)


def _misfits(name: str, facts: ScheduleFacts, *, pp: int, micro_batches: int) -> list[Fault]:
    found = []
    if facts.even_pp and pp % 2:
        found.append(_fault("pp", f"pp={pp} is odd, {name} pairs ranks from both ends and needs an even number"))
    if facts.weight_copies == 2 and micro_batches % 2:
        found.append(
            _fault("micro_batches", f"{micro_batches} micro-batches are odd, {name} sends half of them each way")
        )
    if facts.micro_batches_multiple_of_pp and micro_batches % pp:
        found.append(
            _fault("micro_batches", f"{micro_batches} micro-batches are no multiple of pp={pp}, as {name} needs")
        )
    least = facts.min_micro_batches_per_stage * pp
    if micro_batches < least:
        found.append(
            _fault(
                "micro_batches",
                f"{micro_batches} micro-batches, {name} needs at least "
                f"{facts.min_micro_batches_per_stage} * pp = {least}",
            )
        )
    return found


def _chunk_faults(name: str, *, vpp: int | None, chunks: int) -> list[Fault]:
    facts = SCHEDULES[name]
    if vpp is None or vpp == chunks:
        if chunks < 1 or (facts.chunked and chunks < 2):
            return [_fault("vpp", f"vpp={chunks}, {name} needs at least 2 chunks on each rank")]
        return []
    return [_fault("vpp", f"vpp={vpp}, {name} has {chunks} on each rank; leave it away")]


def _option_faults(
    name: str, *, parts: int | None, waves: int | None, recomputed_chunks: int, chunks: int
) -> list[Fault]:
    found = []
    if parts is not None and name != "seq1f1b":
        found.append(_fault("parts", f"parts={parts}, {name} does not slice sequences; seq1f1b does"))
    if parts is not None and parts < 1:
        found.append(_fault("parts", f"parts={parts}, at least 1 is needed"))
    if waves is not None and name != "hanayo":
        found.append(_fault("waves", f"waves={waves}, {name} has none; hanayo does"))
    if waves is not None and waves < 1:
        found.append(_fault("waves", f"waves={waves}, at least 1 is needed"))
    if recomputed_chunks and name != "chronos":
        found.append(
            _fault(
                "recomputed_chunks",
                f"recomputed_chunks={recomputed_chunks}, {name} does not recompute by chunk; chronos does",
            )
        )
    if not 0 <= recomputed_chunks <= chunks:
        found.append(
            _fault("recomputed_chunks", f"recomputed_chunks={recomputed_chunks}, between 0 and vpp={chunks} are there")
        )
    return found


def _fault(key: str, message: str) -> Fault:
    return Fault(where=_WHERE, key=key, message=message)


assert set(BUILDERS) == set(SCHEDULES), "every schedule is built"
