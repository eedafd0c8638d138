"""Pictures of an accuracy report: predicted against measured, and errors by layout axis."""

import io
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from autotune.accuracy.axes import axis_names, value_on
from autotune.accuracy.prediction import PredictedRun
from autotune.accuracy.report import AccuracyReport
from autotune.units import GIB

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLUMNS: Final = 4
_MOST_VALUES: Final = 12
_WITHIN: Final = 0.10  # the band drawn around a perfect prediction
_MARKERS: Final = "osD^v<>Phd*X"

Pair = tuple[float, float]


def accuracy_plots(report: AccuracyReport) -> dict[str, bytes]:
    """PNG files by name; one that would be empty is left out. The same report gives the same bytes."""
    rows = report.rows
    pictures = {
        "step-time.png": _predicted_against_measured(rows, _time_pair, "step time (s)"),
        "peak-memory.png": _predicted_against_measured(rows, _memory_pair, "peak memory (GiB)"),
        "time-error-by-axis.png": _errors_by_axis(rows, lambda row: row.time_error, "step time"),
        "memory-error-by-axis.png": _errors_by_axis(rows, lambda row: row.memory_error, "peak memory"),
    }
    return {name: content for name, content in pictures.items() if content is not None}


def _time_pair(row: PredictedRun) -> Pair | None:
    measured = row.measured_step_time_s
    return None if measured is None else (measured, row.step_time_s)


def _memory_pair(row: PredictedRun) -> Pair | None:
    measured, predicted = row.measured_bytes, row.like_with_like_bytes
    return None if measured is None or predicted is None else (measured / GIB, predicted / GIB)


def _predicted_against_measured(
    rows: Sequence[PredictedRun], pair_of: Callable[[PredictedRun], Pair | None], quantity: str
) -> bytes | None:
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    by_source: dict[str, list[Pair]] = {}
    for row in rows:
        pair = pair_of(row)
        if pair is not None:
            by_source.setdefault(row.run.source, []).append(pair)
    if not by_source:
        return None
    figure = Figure(figsize=(9.5, 6.5), layout="constrained")
    axes = figure.subplots()
    colours = colormaps["tab20"].colors  # type: ignore[attr-defined]
    for place, (source, pairs) in enumerate(sorted(by_source.items())):
        measured, predicted = zip(*pairs, strict=True)
        axes.scatter(
            measured,
            predicted,
            s=16,
            alpha=0.7,
            color=colours[place % len(colours)],
            marker=_MARKERS[place % len(_MARKERS)],
            linewidths=0,
            label=f"{source} ({len(pairs)})",
        )
    ends = [end for pairs in by_source.values() for pair in pairs for end in pair]
    low, high = min(ends) * 0.8, max(ends) * 1.25
    axes.plot([low, high], [low, high], color="black", linewidth=0.8)
    axes.fill_between(
        [low, high],
        [low * (1 - _WITHIN), high * (1 - _WITHIN)],
        [low * (1 + _WITHIN), high * (1 + _WITHIN)],
        color="grey",
        alpha=0.2,
        linewidth=0,
        label=f"within {_WITHIN:.0%}",
    )
    axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high))
    axes.set_xlabel(f"measured {quantity}")
    axes.set_ylabel(f"predicted {quantity}")
    figure.legend(loc="outside right upper", fontsize=8, frameon=False)
    return _png(figure)


def _errors_by_axis(
    rows: Sequence[PredictedRun], error_of: Callable[[PredictedRun], float | None], quantity: str
) -> bytes | None:
    """A panel for each axis that varies: the spread of errors at each of its values."""
    from matplotlib.figure import Figure

    pairs = [(row, error) for row in rows if (error := error_of(row)) is not None]
    panels: dict[str, dict[object, list[float]]] = {}
    for axis in axis_names():
        groups: dict[object, list[float]] = {}
        for row, error in pairs:
            groups.setdefault(value_on(row, axis), []).append(100 * error)
        if len(groups) > 1:
            panels[axis] = groups
    if not panels:
        return None
    lines = math.ceil(len(panels) / _COLUMNS)
    figure = Figure(figsize=(4 * _COLUMNS, 2.7 * lines), layout="constrained")
    grid = figure.subplots(lines, _COLUMNS, squeeze=False, sharey=True)
    for axes, (axis, groups) in zip(grid.flat, panels.items(), strict=False):
        _draw_panel(axes, axis, groups)
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    figure.suptitle(f"error of the predicted {quantity} (%), by axis; below 0 the prediction is too small")
    return _png(figure)


def _draw_panel(axes: "Axes", axis: str, groups: dict[object, list[float]]) -> None:
    most = sorted(groups, key=lambda value: -len(groups[value]))[:_MOST_VALUES]
    values = sorted(most, key=lambda value: (isinstance(value, str), value))
    axes.boxplot([groups[value] for value in values], showfliers=True, flierprops={"markersize": 2}, widths=0.6)
    labels = [f"{value}\n({len(groups[value])})" for value in values]
    axes.set_xticks(range(1, len(values) + 1), labels, fontsize=6)
    axes.axhline(0, color="black", linewidth=0.6)
    axes.set_title(axis, fontsize=9)
    axes.tick_params(axis="y", labelsize=7)


def _png(figure: "Figure") -> bytes:
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=110, metadata={"Software": None})
    return content.getvalue()
