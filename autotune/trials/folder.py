"""The trial folder: the names in it, its records of processes, and what its logs say at the end.

trial.json     what is asked (TrialSpec), by the runner
rank-R.pid     process of rank R: pid and start time, by the rank as its first act
rank-R.phase   what rank R was doing last, one line, by the rank
rank-R.json    how rank R failed, by the rank
result.json    what was measured (Measured), by rank 0
outcome.json   how the trial ended, by the runner when every process is gone; with it the trial is finished
stdout.log, stderr.log
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path

from autotune.trials.processes import ProcessId

TRIAL = "trial.json"
RESULT = "result.json"
OUTCOME = "outcome.json"
STDOUT = "stdout.log"
STDERR = "stderr.log"

_STDERR_TAIL_BYTES = 64 * 1024
_RANK_FILE = re.compile(r"rank-(\d+)\.(pid|phase|json)")


def rank_files(folder: Path, kind: str) -> dict[int, Path]:
    """Files rank-R.<kind> by rank."""
    matches = ((_RANK_FILE.fullmatch(path.name), path) for path in folder.glob(f"rank-*.{kind}"))
    return dict(sorted((int(match.group(1)), path) for match, path in matches if match is not None))


def recorded_processes(folder: Path) -> tuple[ProcessId, ...]:
    """The ranks' processes as they wrote themselves down; one that is being written or is garbage is left out."""
    found = []
    for path in rank_files(folder, "pid").values():
        try:
            record = json.loads(path.read_bytes())
            found.append(ProcessId(pid=int(record["pid"]), start_time=int(record["start_time"])))
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return tuple(found)


def clear_trial(folder: Path) -> None:
    """Delete what an earlier attempt at this trial left: only files named above."""
    ranks = [path for kind in ("pid", "phase", "json") for path in rank_files(folder, kind).values()]
    for path in (*ranks, *(folder / name for name in (RESULT, OUTCOME, STDOUT, STDERR))):
        path.unlink(missing_ok=True)


def last_phase(folder: Path) -> str:
    """What the ranks were doing last, as far as they said."""
    started = len(rank_files(folder, "pid"))
    phases = [(path.stat().st_mtime_ns, rank, path) for rank, path in rank_files(folder, "phase").items()]
    if not phases:
        return f"{started} ranks had started" if started else "no rank had started"
    _, rank, path = max(phases)
    return f"last phase {one_line(path.read_text(encoding='utf-8', errors='replace'))} (rank-{rank})"


@dataclass(frozen=True, kw_only=True, slots=True)
class LauncherReport:
    """What the launcher's log says at its end.

    last_line: the last words of a rank, before torchrun's own report; rank and exit_code: of the first failure by that
    report, None without one.
    """

    last_line: str
    rank: int | None
    exit_code: int | None


def read_launcher_report(folder: Path) -> LauncherReport:
    """The end of stderr.log. torchrun itself exits with 1 whatever happened; its report names the first failure."""
    text = _tail(folder / STDERR)
    cause = re.search(r"Root Cause \(first observed failure\):.*?rank\s*:\s*(\d+).*?exitcode\s*:\s*(-?\d+)", text, re.S)
    ranks_words = text.partition("torch/distributed/elastic/multiprocessing/")[0].splitlines()
    # The partition leaves the date and place of torchrun's first line, which is no rank's.
    lines = [line for line in ranks_words[: len(ranks_words) - (cause is not None)] if re.search(r"\w", line)]
    return LauncherReport(
        last_line=one_line(lines[-1]) if lines else "",
        rank=int(cause.group(1)) if cause else None,
        exit_code=int(cause.group(2)) if cause else None,
    )


def _tail(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _STDERR_TAIL_BYTES))
            return file.read().decode("utf-8", errors="replace")
    except FileNotFoundError:
        return ""


def one_line(text: str, limit: int = 300) -> str:
    """The text on one line, cut where it gets long."""
    words = " ".join(text.split())
    return words if len(words) <= limit else f"{words[: limit - 1]}…"
