"""The repeated block of a Chronos-style schedule: when one micro-batch's passes run on each rank.

Times are in forward passes of a chunk; a backward takes twice as long, three times where the chunk is recomputed. The
block is issued every `period`, so a rank's passes may not overlap modulo the period, which they fill.
"""

import itertools
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from autotune.spec.layout import IntColumn

_FORWARD: Final = 1
_BACKWARD: Final = 2
_MOST_SEARCHED_CHUNKS: Final = 3
"""A rank has (2v - 1)! orders: 6 for two chunks, 120 for three, 5,040 for four, too many to weigh pair by pair."""


class Pass(NamedTuple):
    """A forward or backward of a chunk on a rank."""

    forward: bool
    chunk: int
    rank: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """When each pass of micro-batch 0 starts, and how much later those of the next one do."""

    starts: dict[Pass, int]
    period: int


def block_of(*, pp: int, chunks: int, recomputed: int) -> Block:
    """The block in which a micro-batch waits least.

    Where all chunks' backwards take equally long a closed pattern is at hand. Where only some are recomputed, the
    order of each rank is searched, up to three chunks; beyond, the pattern without recomputation is kept, which then
    idles a little in every period.
    """
    if 0 < recomputed < chunks <= _MOST_SEARCHED_CHUNKS:
        return _searched(pp, chunks, recomputed)
    return _regular(pp, chunks, _BACKWARD + _FORWARD if recomputed == chunks else _BACKWARD)


def _regular(pp: int, chunks: int, backward: int) -> Block:
    """All backwards equally long.

    No two passes of a rank collide if, seen from rank 0, forwards start at multiples of F + BW and backwards one
    forward later, each chunk at another multiple modulo the period: from rank to rank a forward moves by +F and a
    backward by -BW, which is the same modulo F + BW.
    """
    pair = _FORWARD + backward
    shallow_first = range(chunks)
    forwards = _chain(shallow_first, ready=0, hop=_FORWARD, pair=pair, offset=0, pp=pp)
    turned = max(forwards) + pp * _FORWARD
    backwards = _chain(shallow_first[::-1], ready=turned, hop=backward, pair=pair, offset=pp * _FORWARD, pp=pp)
    starts = {Pass(True, c, rank): forwards[c] + rank * _FORWARD for c in range(chunks) for rank in range(pp)}
    starts |= {
        Pass(False, c, rank): backwards[c] + (pp - 1 - rank) * backward for c in range(chunks) for rank in range(pp)
    }
    return Block(starts=starts, period=chunks * pair)


def _chain(order: range, *, ready: int, hop: int, pair: int, offset: int, pp: int) -> list[int]:
    """Start of each chunk's pass on its first rank: the earliest with its own multiple of `pair` after `offset`."""
    starts = [0] * len(order)
    taken: set[int] = set()
    for chunk in order:
        multiple = -((offset - ready) // pair)
        while multiple % len(order) in taken:
            multiple += 1
        taken.add(multiple % len(order))
        starts[chunk] = offset + multiple * pair
        ready = starts[chunk] + pp * hop
    return starts


def _searched(pp: int, chunks: int, recomputed: int) -> Block:
    """Weighs every order of every rank against those of its neighbours, by dynamic programming along the ranks.

    Forward 0 runs from rank to rank without waiting; then an order fixes when, modulo the period, the other passes of
    a rank start, and the wait of each hop depends on two neighbours only. A wait counts once for the micro-batch, and
    once more for each kept chunk that lives through it.
    """
    lengths = [_FORWARD] * chunks + [_BACKWARD + (_FORWARD if c < recomputed else 0) for c in range(chunks)]
    period = sum(lengths)
    orders = _orders(lengths)
    weights = [1 + max(0, c + 1 - recomputed) for c in range(chunks)]
    hop = _hop_waits(orders, lengths, weights, period)
    best = np.where(np.eye(len(orders), dtype=np.bool_), 0, np.iinfo(np.int32).max // 2)
    came_from = []
    for _ in range(pp - 1):
        through = best[:, :, None] + hop[None]
        came_from.append(through.argmin(axis=1))
        best = through.min(axis=1)
    total = best + _turn_waits(orders, lengths, weights, period, pp)
    first, last = np.unravel_index(int(total.argmin()), total.shape)
    chosen = [int(last)]
    for origin in reversed(came_from):
        chosen.append(int(origin[first, chosen[-1]]))
    residues = [[(rank + int(at)) % period for at in orders[order]] for rank, order in enumerate(reversed(chosen))]
    return Block(starts=_timed(residues, lengths, chunks, period), period=period)


def _orders(lengths: list[int]) -> IntColumn:
    """Every order of a rank's passes in a period, as the start of each after forward 0; one row an order."""
    rows = []
    for order in itertools.permutations(range(1, len(lengths))):
        starts = [0] * len(lengths)
        now = lengths[0]
        for index in order:
            starts[index] = now
            now += lengths[index]
        rows.append(starts)
    return np.array(rows, dtype=np.int64)


def _hop_waits(orders: IntColumn, lengths: list[int], weights: list[int], period: int) -> IntColumn:
    """Weighted waits between a rank of order `row` and the next one of order `column`."""
    chunks = len(weights)
    waits = np.zeros((len(orders), len(orders)), dtype=np.int64)
    for chunk, weight in enumerate(weights):
        forward, backward = orders[:, chunk], orders[:, chunks + chunk]
        waits += weight * ((forward[None] - forward[:, None]) % period)
        waits += weight * ((backward[:, None] - backward[None] - _FORWARD - lengths[chunks + chunk]) % period)
    return waits


def _turn_waits(orders: IntColumn, lengths: list[int], weights: list[int], period: int, pp: int) -> IntColumn:
    """Weighted waits between chunks, where rank 0 has order `row` and the last rank order `column`."""
    chunks = len(weights)
    first, last = orders[:, None, :], orders[None, :, :]
    deepest = chunks - 1
    waits = weights[deepest] * ((last[..., chunks + deepest] - last[..., deepest] - _FORWARD) % period)
    waits = np.broadcast_to(waits, (len(orders), len(orders))).copy()
    for chunk in range(deepest):
        deeper = chunks + chunk + 1
        waits += weights[chunk] * ((first[..., chunk + 1] - last[..., chunk] - pp * _FORWARD) % period)
        waits += weights[chunk] * ((pp - 1 + last[..., chunks + chunk] - first[..., deeper] - lengths[deeper]) % period)
    return waits


def _timed(residues: list[list[int]], lengths: list[int], chunks: int, period: int) -> dict[Pass, int]:
    """Start of each pass along the way of a micro-batch: the first time with its residue after the pass before."""
    pp = len(residues)
    way = [Pass(True, chunk, rank) for chunk in range(chunks) for rank in range(pp)]
    way += [Pass(False, chunk, rank) for chunk in reversed(range(chunks)) for rank in reversed(range(pp))]
    starts = {}
    now = 0
    for step in way:
        index = step.chunk if step.forward else chunks + step.chunk
        now += (residues[step.rank][index] - now) % period
        starts[step] = now
        now += lengths[index]
    return starts
