"""Numbers as cells and facts as sentences, for every renderer that people read."""

import shlex
from collections.abc import Callable, Iterator

from autotune.report.ranked import RankedLayout, Report, SpaceSummary
from autotune.spec.figure import Basis
from autotune.spec.outcome import Failed, Measured
from autotune.spec.verdict import Verdict
from autotune.spec.workload import Problem
from autotune.units import format_bytes, format_seconds

UNKNOWN = "–"

Part = tuple[str, str, str]
"""Name, size and share of a part; parts of no size are left out."""

CELL_TITLES = (
    ("", "#"), ("step time", "predicted"), ("step time", "measured"), ("tokens/s", "per GPU"), ("", "MFU"),
    ("peak", "memory"), ("of", "limit"), ("", "basis"), ("", "verdict"),
)  # fmt: skip
"""Two lines of title for each cell of `ranked_cells`."""


_PREDICTED = {
    Basis.FITTED: "predicted and fitted to trials",
    Basis.INTERPOLATED: "predicted from measured rates",
    Basis.DATASHEET: "predicted from datasheet rates",
    None: "predicted",
}


def printable(text: str) -> str:
    """Text from a file without what could steer a terminal: control characters and direction marks are shown as �."""
    return "".join(letter if letter.isprintable() else "�" for letter in " ".join(text.split()))


def ranked_cells(ranked: RankedLayout) -> tuple[str, ...]:
    """One layout as the cells under CELL_TITLES."""
    return (
        UNKNOWN if ranked.place is None else str(ranked.place),
        seconds(ranked.predicted_s),
        seconds(ranked.measured_s),
        UNKNOWN if ranked.tokens_per_s_per_gpu is None else rate(ranked.tokens_per_s_per_gpu),
        UNKNOWN if ranked.mfu is None else f"{100 * ranked.mfu:.1f} %",
        UNKNOWN if ranked.peak_bytes is None else format_bytes(ranked.peak_bytes),
        UNKNOWN if ranked.peak_bytes is None else percent(ranked.peak_bytes / ranked.limit_bytes),
        ranked.basis.value if ranked.basis is not None else UNKNOWN,
        ranked.verdict.value,
    )


def seconds(duration_s: float | None) -> str:
    """A time, or the sign for unknown."""
    return UNKNOWN if duration_s is None else format_seconds(duration_s)


def percent(share: float) -> str:
    """0.905 -> "90 %"; never rounded up to 100 % by a limit that is kept, nor down to it by one that is broken."""
    whole = round(100 * share)
    if whole == 100 and share != 1:
        whole = 99 if share < 1 else 101
    return f"{whole} %"


def rate(per_s: float) -> str:
    """Tokens per second with three digits at least: "12,345", "34.5"."""
    return f"{per_s:,.0f}" if per_s >= 100 else f"{per_s:.3g}"


def question(problem: Problem, engine: str) -> str:
    """What was asked."""
    cluster, workload = problem.cluster, problem.workload
    kind = "CPU processes" if cluster.gpu.device == "cpu" else "GPUs"
    return printable(
        f"{problem.model.name} on {cluster.name} ({cluster.gpus:,} {kind}, {cluster.gpu.name}), engine {engine}: "
        f"{workload.global_batch_size:,} sequences of {workload.sequence_length:,} tokens a step, "
        f"{workload.precision}, {workload.optimizer}, {workload.gradient_dtype} gradients, "
        f"{workload.attention} attention"
    )


def space_sentence(space: SpaceSummary, limit_bytes: float) -> str:
    """How many layouts there are and how many of them do not fit."""
    combinations = f"of {space.enumerated:,} combinations"
    if not space.valid:
        return f"no layout {combinations} is legal"
    fit = f"{space.infeasible:,} of them {'does' if space.infeasible == 1 else 'do'} not fit"
    if space.infeasible == 0:
        fit = "all of them fit" if space.valid > 1 else "it fits"
    elif space.infeasible == space.valid:
        fit = "none of them fits" if space.valid > 1 else "it does not fit"
    layouts = "layout" if space.valid == 1 else "layouts"
    return f"{space.valid:,} legal {layouts} {combinations}, {fit} in {format_bytes(limit_bytes)}"


def rejection_sentence(space: SpaceSummary) -> str:
    """How many combinations each rule rejected, most first."""
    most_first = sorted(space.invalid.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{code} {count:,}" for code, count in most_first if count) or "none"


def winner_sentence(winner: RankedLayout) -> str:
    """The winner, its time, and how far that can be believed."""
    if winner.basis is Basis.MEASURED:
        spread_s = winner.result.spread_s if isinstance(winner.result, Measured) else None
        spread = f", its steps differ by up to {format_seconds(spread_s)}" if spread_s is not None else ""
        return f"{winner.key}: {seconds(winner.measured_s)} a step, measured{spread}"
    interval = ""
    if winner.low_s is not None and winner.high_s is not None:
        interval = f" ({format_seconds(winner.low_s)} to {format_seconds(winner.high_s)} expected)"
    return f"{winner.key}: {seconds(winner.predicted_s)} a step, {_PREDICTED[winner.basis]}{interval}"


def nothing_sentence(report: Report) -> str:
    """Why there is no winner."""
    if report.nearest_miss is None:
        return "no layout is legal: every combination breaks a rule"
    return f"nothing fits; the nearest miss is {report.nearest_miss.key}"


def calibration_sentence(report: Report) -> str | None:
    """What the runs taught the cost model, or None where no run did."""
    factors = report.calibration
    if factors is None or factors.fitted_to == 0:
        return None
    runs = "1 run" if factors.fitted_to == 1 else f"{factors.fitted_to} runs"
    overhead = f", {format_seconds(factors.overhead_s)} of overhead a step" if factors.overhead_s > 0 else ""
    return (
        f"predictions are fitted to {runs}: compute × {factors.compute_time:.3f}, communication × "
        f"{factors.communication_time:.3f}{overhead}, memory × {factors.memory:.3f}"
    )


def export_command(report: Report) -> str:
    """The command that writes the winner's launch files again; `--to` takes every engine that can write it."""
    place = report.winner.place if report.winner is not None and report.winner.place is not None else 1
    target = "torchrun" if report.engine == "torch" else report.engine
    return f"autotune export {shlex.quote(report.run or 'RUN')} --place {place} --to {target}"


def failures(report: Report) -> Iterator[tuple[str, str]]:
    """Layout key and evidence of each trial that failed."""
    for ranked in report.ran:
        if isinstance(ranked.result, Failed):
            yield ranked.key, printable(f"{ranked.result.status.value}: {ranked.result.evidence}")


def marks(ranked: RankedLayout, winner: RankedLayout | None) -> tuple[str, ...]:
    """What a table says beside the key of a layout."""
    is_winner = winner is not None and ranked.key == winner.key
    return (("winner",) if is_winner else ()) + (("baseline",) if ranked.baseline else ())


def memory_parts(ranked: RankedLayout) -> list[Part]:
    """The memory by part, the largest first."""
    return _parts(ranked.memory_bytes, format_bytes)


def time_parts(ranked: RankedLayout) -> list[Part]:
    """The step time by part, the largest first."""
    return _parts(ranked.time_s, format_seconds)


def _parts(sizes: dict[str, float], text_of: Callable[[float], str]) -> list[Part]:
    total = sum(sizes.values())
    largest_first = sorted(sizes.items(), key=lambda pair: -pair[1])
    return [(name.replace("_", " "), text_of(size), percent(size / total)) for name, size in largest_first if size > 0]


def memory_rows(ranked: RankedLayout) -> list[tuple[str, str]]:
    """What the peak comes to against the limit."""
    if ranked.peak_bytes is None or ranked.upper_bytes is None:
        return []
    rows = [
        ("peak", format_bytes(ranked.peak_bytes)),
        ("upper bound", format_bytes(ranked.upper_bytes)),
        ("limit", format_bytes(ranked.limit_bytes)),
        ("headroom over the peak", format_bytes(ranked.limit_bytes - ranked.peak_bytes)),
        ("headroom over the upper bound", format_bytes(ranked.limit_bytes - ranked.upper_bytes)),
    ]
    if ranked.measured_peak_bytes is not None:
        rows.append(("measured inside the framework", format_bytes(ranked.measured_peak_bytes)))
    return rows


def speed_rows(ranked: RankedLayout) -> list[tuple[str, str]]:
    """What the step time comes to."""
    rows = [("step time predicted", seconds(ranked.predicted_s))]
    if ranked.low_s is not None and ranked.high_s is not None:
        rows.append(("expected between", f"{format_seconds(ranked.low_s)} and {format_seconds(ranked.high_s)}"))
    if ranked.measured_s is not None:
        rows.append(("step time measured", seconds(ranked.measured_s)))
    cells = ranked_cells(ranked)
    return [*rows, ("tokens/s per GPU", cells[3]), ("MFU", cells[4]), ("basis", cells[7])]


def verdict_sentence(ranked: RankedLayout) -> str:
    """The verdict of one layout in words."""
    match ranked.verdict:
        case Verdict.INVALID:
            return f"invalid: it breaks {len(ranked.reasons)} rule{'s' if len(ranked.reasons) != 1 else ''}"
        case Verdict.FITS | Verdict.BORDERLINE | Verdict.DOES_NOT_FIT | Verdict.OUT_OF_MEMORY | Verdict.FAILED:
            return ranked.verdict.value
