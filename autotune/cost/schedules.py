"""Closed forms of each pipeline schedule: idle time and activations in flight.

p: pipeline ranks, m: micro-batches per step, v: chunks per rank; F, B, W: forward, input gradient and weight gradient
of one micro-batch on one rank (all its chunks). Idle time is linear in F, B and W; what is in flight counts
micro-batches' activations of one rank.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from autotune.spec.axes import AXIS_BY_NAME
from autotune.spec.layout import FloatColumn, IntColumn
from autotune.spec.schedules import SCHEDULES

SEQ1F1B_SLICES: Final = 4
"""Slices of a sequence in Seq1F1B: the default of `sp_queue(pipe_sp_splits=4)` in the authors' code. It is no axis."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pipe:
    """p, m and v of each row."""

    p: FloatColumn
    m: FloatColumn
    v: FloatColumn


BubbleTerms = tuple[FloatColumn, FloatColumn, FloatColumn]
"""(f, b, w): the busiest rank idles f*F + b*B + w*W seconds a step, and never less than nothing."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ClosedForm:
    """bubble: idle time of a step; in_flight: micro-batches held at the peak by rank i, before it is capped by m."""

    bubble: Callable[[Pipe], BubbleTerms]
    in_flight: Callable[[Pipe, FloatColumn], FloatColumn]


def _times(count: Callable[[Pipe], FloatColumn], f: float, b: float, w: float) -> Callable[[Pipe], BubbleTerms]:
    """Bubble terms count * (f, b, w)."""

    def terms(pipe: Pipe) -> BubbleTerms:
        passes = count(pipe)
        return passes * f, passes * b, passes * w

    return terms


def _depth(pipe: Pipe) -> FloatColumn:
    return pipe.p - 1


def _depth_over_chunks(pipe: Pipe) -> FloatColumn:
    return (pipe.p - 1) / pipe.v


def _interleaved(pipe: Pipe, i: FloatColumn) -> FloatColumn:
    """Megatron-LM warms rank i up with 2(p-1-i) + (v-1)p chunks and then holds one more; v chunks are one unit."""
    return (2 * (pipe.p - 1 - i) + (pipe.v - 1) * pipe.p + 1) / pipe.v


# Huang et al. 2018 (1811.06965); Narayanan et al. 2021 (2104.04473), section 2.2; Lamy-Poirier 2022 (2211.05953);
# Qi et al. 2023 (2401.10241), table 1; Qi et al. 2024 (2405.15362), table 1; DeepSeek DualPipe's README;
# Li and Hoefler 2021 (2107.06925) and Liu et al. 2023 (2308.15762) as replayed with equal stages and free transfers;
# Wu et al. 2024 (2410.19367); Sun et al. 2024 (2406.03488). A peak known only as a range is its upper end.
CLOSED_FORMS: Final[dict[str, ClosedForm]] = {
    "gpipe": ClosedForm(bubble=_times(_depth, 1, 1, 1), in_flight=lambda x, i: x.m),
    "1f1b": ClosedForm(bubble=_times(_depth, 1, 1, 1), in_flight=lambda x, i: x.p - i),
    "interleaved": ClosedForm(bubble=_times(_depth_over_chunks, 1, 1, 1), in_flight=_interleaved),
    "breadth-first": ClosedForm(bubble=_times(_depth_over_chunks, 1, 1, 1), in_flight=lambda x, i: x.m),
    # What the shorter warm-up saves, the delayed weight gradients hold.
    "interleaved-zb": ClosedForm(bubble=_times(_depth_over_chunks, 1, 1, -1), in_flight=_interleaved),
    "zb-h1": ClosedForm(bubble=_times(_depth, 1, 1, -1), in_flight=lambda x, i: x.p),
    "zb-h2": ClosedForm(bubble=_times(_depth, 1, 1, -2), in_flight=lambda x, i: 2 * x.p - 1),
    # No bubble while 2B <= W + 2F; beyond that the excess of a chunk (half a rank's pass) is waited for p-1 times.
    "zb-v": ClosedForm(bubble=_times(lambda x: (x.p - 1) / 2, -2, 2, -1), in_flight=lambda x, i: x.p),
    "v-half": ClosedForm(bubble=_times(lambda x: (x.p - 1) / 2, 1, 1, 1), in_flight=lambda x, i: (x.p + 2) / 2),
    # Where F, B and W differ V-Min also idles in its steady state, by an amount no closed form is published for.
    "v-min": ClosedForm(bubble=_times(lambda x: (x.p - 1) * 2 / 3, 1, 1, 1), in_flight=lambda x, i: (x.p + 4) / 3),
    # (p/2 - 1)(F&B + B + W - 3W) with nothing hidden in the pair F&B = F + B + W.
    "dualpipe": ClosedForm(bubble=_times(lambda x: x.p / 2 - 1, 1, 2, -1), in_flight=lambda x, i: x.p + 1),
    # The same with 2p stages of half a rank's layers: (p - 1) of half a pass; 2p + 1 half activations.
    "dualpipev": ClosedForm(bubble=_times(lambda x: (x.p - 1) / 2, 1, 2, -1), in_flight=lambda x, i: x.p + 0.5),
    "chimera": ClosedForm(bubble=_times(lambda x: x.p - 2, 0, 1, 1), in_flight=lambda x, i: x.p),
    "hanayo": ClosedForm(bubble=_times(_depth, 0, 1, 1), in_flight=lambda x, i: x.p),
    "bitpipe": ClosedForm(bubble=_times(lambda x: (x.p - 2) / 2, 0, 1, 1), in_flight=lambda x, i: x.p),
    "seq1f1b": ClosedForm(
        bubble=_times(lambda x: (x.p - 1) / SEQ1F1B_SLICES, 1, 1, 1),
        in_flight=lambda x, i: (x.p - 1 - i + SEQ1F1B_SLICES) / SEQ1F1B_SLICES,
    ),
    # Reconstructed: p(v+1)/(2v) in the limit and (v-1)/v more in the best block without steady-state bubbles.
    "chronos": ClosedForm(
        bubble=_times(lambda x: x.p, 1, 1, 1),
        in_flight=lambda x, i: x.p * (x.v + 1) / (2 * x.v) + (x.v - 1) / x.v,
    ),
}


def bubble_terms(schedule: IntColumn, pipe: Pipe) -> BubbleTerms:
    """(f, b, w) of each row; all 0 where p is 1."""
    f, b, w = (np.zeros(len(schedule)) for _ in range(3))
    for rows, form, own in _by_schedule(schedule, pipe):
        f[rows], b[rows], w[rows] = form.bubble(own)
    piped = pipe.p > 1
    return f * piped, b * piped, w * piped


def in_flight(schedule: IntColumn, pipe: Pipe, rank: IntColumn) -> FloatColumn:
    """Micro-batches whose activations pipeline rank `rank` holds at the peak. At least a chunk's, at most all m."""
    held = np.zeros(len(schedule))
    for rows, form, own in _by_schedule(schedule, pipe):
        held[rows] = form.in_flight(own, rank[rows].astype(np.float64))
    return np.where(pipe.p > 1, np.maximum(np.minimum(held, pipe.m), 1 / pipe.v), 1.0)


def _by_schedule(schedule: IntColumn, pipe: Pipe) -> list[tuple[IntColumn, ClosedForm, Pipe]]:
    """The rows of each schedule that occurs, with its closed form and their part of the pipe."""
    found = []
    names = AXIS_BY_NAME["schedule"].choices
    for code in np.flatnonzero(np.bincount(schedule)):
        rows = np.flatnonzero(schedule == code)
        own = Pipe(p=pipe.p[rows], m=pipe.m[rows], v=pipe.v[rows])
        found.append((rows, CLOSED_FORMS[str(names[code])], own))
    return found


assert set(CLOSED_FORMS) == set(SCHEDULES), "every schedule has a closed form"
