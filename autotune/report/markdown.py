"""report.md of a run: what was asked, who is first and why, what was tried, and how to use it."""

import re
from collections.abc import Iterable, Iterator

from autotune.report.ranked import RankedLayout, Report
from autotune.report.wording import (
    CELL_TITLES,
    UNKNOWN,
    Part,
    calibration_sentence,
    export_command,
    marks,
    memory_parts,
    memory_rows,
    nothing_sentence,
    printable,
    question,
    ranked_cells,
    seconds,
    space_sentence,
    speed_rows,
    time_parts,
    winner_sentence,
)
from autotune.spec.outcome import Failed, Measured
from autotune.units import format_bytes, format_seconds

_SPECIAL = re.compile(r"([\\`*_\[\]<>#|~$!])")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def report_markdown(report: Report) -> str:
    """The whole file."""
    sections = (
        _answer(report),
        _ranking(report),
        _parts_of_best(report),
        _trials(report),
        _space(report),
        _messages("Warnings", report.warnings),
        _messages("Notes", report.notes),
        _making(report),
    )
    return "\n\n".join("\n".join(lines) for section in sections if (lines := list(section))) + "\n"


def escape(text: str) -> str:
    """Text from a file or a log that must not become Markdown or HTML, on one line."""
    return _SPECIAL.sub(lambda match: _ENTITIES.get(match[1], "\\" + match[1]), printable(text).replace("&", "&amp;"))


def code(text: str) -> str:
    """Text as an inline code span that no backtick in it can close, and no pipe can split a table with."""
    fence = _fence(text, shortest=1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{printable(text)}{pad}{fence}".replace("|", "\\|")


def _answer(report: Report) -> Iterator[str]:
    yield f"# Layouts of {escape(report.problem.model.name)} on {escape(report.problem.cluster.name)}"
    yield ""
    yield f"{escape(question(report.problem, report.engine))}."
    yield ""
    if report.winner is not None:
        yield f"**Winner:** {escape(winner_sentence(report.winner))}."
        if report.run is not None:
            yield ""
            yield "Its launch files are in `launch/`; those of another place or engine come from:"
            yield from ("", *_block(export_command(report)))
    else:
        yield f"**No winner:** {escape(nothing_sentence(report))}."
        miss = report.nearest_miss
        yield ""
        yield from _bullets(f"{reason.code}: {reason.message}" for reason in (miss.reasons if miss else ()))


def _ranking(report: Report) -> Iterator[str]:
    if not report.layouts:
        return
    titles = [" ".join(filter(None, title)) for title in CELL_TITLES]
    yield "## Ranking"
    yield ""
    yield from _table(
        [titles[0], "layout", *titles[1:]],
        (
            [cells[0], _marked(ranked, report), *cells[1:]]
            for ranked in report.layouts
            if (cells := ranked_cells(ranked))
        ),
        numbers=(0, 2, 3, 4, 5, 6, 7),
    )
    yield ""
    limit = format_bytes(report.limit_bytes)
    yield f"Peak memory is that of the fullest pipeline stage; a process may use {limit}."


def _marked(ranked: RankedLayout, report: Report) -> str:
    return " ".join((code(ranked.key), *marks(ranked, report.winner)))


def _parts_of_best(report: Report) -> Iterator[str]:
    best = report.winner or report.nearest_miss
    if best is None:
        return
    yield f"## {'The winner' if report.winner is not None else 'The nearest miss'} by part"
    yield ""
    yield f"Memory of the fullest stage, {best.fullest_stage}:"
    yield ""
    yield from _parts_table("size", memory_parts(best), memory_rows(best))
    yield ""
    yield "Time of a step:"
    yield ""
    yield from _parts_table("time", time_parts(best), speed_rows(best))


def _trials(report: Report) -> Iterator[str]:
    if not report.ran:
        return
    yield "## Trials"
    yield ""
    yield from _table(
        ["layout", "outcome", "predicted", "measured", "spread", "held by the framework", "evidence"],
        (_trial_cells(ranked) for ranked in report.ran),
        numbers=(2, 3, 4, 5),
    )
    if report.stop_reason is not None:
        yield ""
        yield f"The search stopped: {escape(report.stop_reason)}."


def _trial_cells(ranked: RankedLayout) -> list[str]:
    outcome, spread, evidence = UNKNOWN, UNKNOWN, ""
    match ranked.result:
        case Measured() as measured:
            outcome, spread = "measured", format_seconds(measured.spread_s)
        case Failed(status=status, evidence=text):
            outcome, evidence = status.value, escape(text)
        case None:
            pass
    held = format_bytes(ranked.measured_peak_bytes) if ranked.measured_peak_bytes is not None else UNKNOWN
    return [code(ranked.key), outcome, seconds(ranked.predicted_s), seconds(ranked.measured_s), spread, held, evidence]


def _space(report: Report) -> Iterator[str]:
    yield "## The space"
    yield ""
    yield f"{escape(space_sentence(report.space, report.limit_bytes))}."
    rejected = sorted(report.space.invalid.items(), key=lambda pair: (-pair[1], pair[0]))
    if rejected:
        yield ""
        rows = ([code(rule), f"{count:,}"] for rule, count in rejected)
        yield from _table(["rejected by rule", "combinations"], rows, numbers=(1,))


def _messages(title: str, messages: tuple[str, ...]) -> Iterator[str]:
    if messages:
        yield f"## {title}"
        yield ""
        yield from _bullets(messages)


def _making(report: Report) -> Iterator[str]:
    yield "## How this was made"
    yield ""
    yield from _block(report.command)
    yield ""
    calibration = calibration_sentence(report)
    facts = [f"took {format_seconds(report.elapsed_s)}", *([calibration] if calibration is not None else [])]
    yield from _bullets([*facts, *(f"{name} {version}" for name, version in report.versions.items())])
    yield from _bullets(f"trials ran with {fingerprint}" for fingerprint in _fingerprints(report))


def _fingerprints(report: Report) -> Iterable[str]:
    """Software and hardware of the trials, each combination once."""
    seen = (ranked.result.fingerprint for ranked in report.ran if isinstance(ranked.result, Measured))
    return dict.fromkeys(", ".join(f"{name} {value}" for name, value in sorted(one.items())) for one in seen if one)


def _parts_table(amount: str, parts: list[Part], totals: list[tuple[str, str]]) -> Iterator[str]:
    bold = ([f"**{name}**", text, ""] for name, text in totals)
    yield from _table(["part", amount, "share"], [*map(list, parts), *bold], numbers=(1, 2))


def _table(titles: list[str], rows: Iterable[list[str]], *, numbers: tuple[int, ...]) -> Iterator[str]:
    """A table whose cells are escaped already. numbers: columns that are set to the right."""
    yield _row(titles)
    yield _row(["--:" if column in numbers else "---" for column in range(len(titles))])
    for row in rows:
        yield _row(row)


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _bullets(sentences: Iterable[str]) -> Iterator[str]:
    for sentence in sentences:
        yield f"- {escape(sentence)}"


def _block(line: str) -> tuple[str, str, str]:
    fence = _fence(line, shortest=3)
    return fence, printable(line), fence


def _fence(text: str, *, shortest: int) -> str:
    """More backticks than stand together anywhere in the text."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    return "`" * max(shortest, longest + 1)
