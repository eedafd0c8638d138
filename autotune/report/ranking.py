"""rank(): who is first. A measured step time ranks by itself, a predicted one by its prediction, all in one order."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from autotune.report.describe import describe
from autotune.report.lookup import rows_of
from autotune.report.ranked import RankedLayout
from autotune.report.scored import ScoredTable
from autotune.spec.axes import AXIS_NAMES
from autotune.spec.layout import FloatColumn, IntColumn, Layout
from autotune.spec.outcome import Failed, Measured, Status, TrialResult
from autotune.spec.verdict import Origin, Verdict
from autotune.units import format_bytes, format_seconds

TIMES_RANK_NOTHING = (
    "the measured step times are those of more processes than cores and rank nothing: the order is that of the "
    "predictions, and the trials show what a layout computes and what it holds in memory"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Ranking:
    """The outcome of `rank`.

    layouts: the best `top` by place, then what else ran and the baseline, those with a place first, then the nearest
    miss. winner: the fastest layout that was measured, where measured times count; else the first place. nearest_miss:
    when nothing fits, the layout that is the least over the limit. ranking_s: see `ranking_seconds`, for every row.
    """

    layouts: tuple[RankedLayout, ...]
    winner: RankedLayout | None
    nearest_miss: RankedLayout | None
    ranking_s: FloatColumn
    warnings: tuple[str, ...]
    notes: tuple[str, ...]


def rank(
    scored: ScoredTable,
    trials: Mapping[str, TrialResult],
    *,
    top: int,
    origins: Mapping[str, Origin] | None = None,
    baseline: Layout | None = None,
    baseline_origins: Mapping[str, Origin] | None = None,
    time_counts: bool = True,
) -> Ranking:
    """Rank a scored table.

    trials: results by layout key; the table holds each of these layouts, and the baseline. origins: where the values of
    the axes came from, "searched" if not given. time_counts: a measured time says something about the target.
    """
    rows = rows_of(scored.table, {*trials, *([baseline.key] if baseline else [])})
    results = {rows[key]: result for key, result in trials.items()}
    baseline_row = rows[baseline.key] if baseline else None
    ranking_s = ranking_seconds(scored, results, time_counts=time_counts)
    nothing_fits = not np.isfinite(ranking_s).any()
    miss_row = nearest_miss_row(scored) if nothing_fits and len(scored) else None
    kept = [*rows.values(), *([miss_row] if miss_row is not None else [])]

    given = origins or dict.fromkeys(AXIS_NAMES, Origin.SEARCHED)
    described = {
        row: describe(
            scored,
            row,
            (baseline_origins or given) if row == baseline_row else given,
            place=place,
            result=results.get(row),
            time_counts=time_counts,
            baseline=row == baseline_row,
        )
        for row, place in _places(ranking_s, scored.peak_bytes, top=top, kept=kept)
    }
    layouts = tuple(described.values())
    winner = _winner(layouts, time_counts=time_counts)
    return Ranking(
        layouts=layouts,
        winner=winner,
        nearest_miss=described[miss_row] if miss_row is not None else None,
        ranking_s=ranking_s,
        warnings=_warnings(winner),
        notes=tuple(_notes(layouts, winner, time_counts=time_counts)),
    )


def ranking_seconds(scored: ScoredTable, results: Mapping[int, TrialResult], *, time_counts: bool) -> FloatColumn:
    """The step time by which each row ranks; infinite where it does not: it does not fit or its trial failed.

    results: by row. What ran fits, whatever was predicted. An interrupted trial says nothing.
    """
    ranking_s = np.where(scored.feasible, scored.step_s, np.inf)
    for row, result in results.items():
        match result:
            case Measured():
                ranking_s[row] = result.step_time_s if time_counts else scored.step_s[row]
            case Failed(status=Status.INTERRUPTED):
                pass
            case Failed():
                ranking_s[row] = np.inf
    return ranking_s


def rows_by_place(ranking_s: FloatColumn, peak_bytes: FloatColumn, *, first: int) -> IntColumn:
    """The rows at places 1 to `first`, fewer where fewer rank. Of equal times the one that holds less comes first."""
    if first < len(ranking_s):
        slowest_s = np.partition(ranking_s, first - 1)[first - 1]
        rows = np.flatnonzero((ranking_s <= slowest_s) & np.isfinite(ranking_s))
    else:
        rows = np.flatnonzero(np.isfinite(ranking_s))
    ordered = rows[np.lexsort((rows, peak_bytes[rows], ranking_s[rows]))]
    return np.asarray(ordered[:first], dtype=np.int64)


def _places(
    ranking_s: FloatColumn, peak_bytes: FloatColumn, *, top: int, kept: list[int]
) -> list[tuple[int, int | None]]:
    """Row and place of the best and of the kept rows, by place, those without one last."""
    places: dict[int, int | None] = {
        int(row): place for place, row in enumerate(rows_by_place(ranking_s, peak_bytes, first=top), start=1)
    }
    for row in kept:
        if row not in places:
            places[row] = _place(ranking_s, peak_bytes, row)
    return sorted(places.items(), key=lambda pair: (pair[1] is None, pair[1] or 0, pair[0]))


def nearest_miss_row(scored: ScoredTable) -> int:
    """The row that is over the limits of GPU and host by the smallest share."""
    host_limit_bytes = scored.problem.cluster.host_memory_bytes.value
    over = np.maximum(scored.peak_bytes / scored.limit_bytes, scored.estimates.host_bytes / host_limit_bytes)
    return int(np.argmin(over))


def _place(ranking_s: FloatColumn, peak_bytes: FloatColumn, row: int) -> int | None:
    """One more than the rows before this one, in the order of `rows_by_place`."""
    if not np.isfinite(ranking_s[row]):
        return None
    equals = np.flatnonzero(ranking_s == ranking_s[row])
    ordered = equals[np.lexsort((equals, peak_bytes[equals]))]
    faster = np.count_nonzero(ranking_s < ranking_s[row])
    return int(faster + np.flatnonzero(ordered == row)[0] + 1)


def _winner(layouts: tuple[RankedLayout, ...], *, time_counts: bool) -> RankedLayout | None:
    placed = [ranked for ranked in layouts if ranked.place is not None]
    measured = [ranked for ranked in placed if ranked.measured_s is not None and time_counts]
    return next(iter(measured or placed), None)


def _warnings(winner: RankedLayout | None) -> tuple[str, ...]:
    if winner is None or winner.verdict is not Verdict.BORDERLINE or winner.upper_bytes is None:
        return ()
    return (
        f"the winner {winner.key} is borderline: it may need up to {format_bytes(winner.upper_bytes)}, a process may "
        f"use {format_bytes(winner.limit_bytes)}; run it with --trials, or plan with less by --memory-limit",
    )


def _notes(layouts: tuple[RankedLayout, ...], winner: RankedLayout | None, *, time_counts: bool) -> Iterator[str]:
    if not time_counts:
        if any(ranked.measured_s is not None for ranked in layouts):
            yield TIMES_RANK_NOTHING
        return
    if winner is None or not isinstance(winner.result, Measured):
        return
    first = layouts[0]
    if winner.place != 1:
        yield (
            f"the winner {winner.key} is the fastest of the layouts that ran, "
            f"{format_seconds(winner.measured_s or 0)} a step; {first.key} at place 1 is predicted at "
            f"{format_seconds(first.predicted_s or 0)} but did not run: give more --trials to try it"
        )
    spread_s = winner.result.spread_s
    near = [ranked for ranked in layouts if ranked.place and _lead_s(winner, ranked) < spread_s]
    if len(near) > 1:
        yield (
            f"steps of the winner differ by up to {format_seconds(spread_s)}, and {_others(len(near) - 1)} within "
            "that of it: which of them is fastest is not settled"
        )


def _others(count: int) -> str:
    return "1 other layout here is" if count == 1 else f"{count} other layouts here are"


def _lead_s(winner: RankedLayout, other: RankedLayout) -> float:
    return abs((other.ranking_s or 0.0) - (winner.ranking_s or 0.0))
