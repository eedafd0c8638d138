"""accuracy(): how well the cost model predicts runs that others measured."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from autotune.accuracy.data import shipped_assumptions, shipped_files
from autotune.accuracy.markdown import accuracy_markdown
from autotune.accuracy.plots import accuracy_plots
from autotune.accuracy.report import AccuracyReport, accuracy_report
from autotune.errors import Fault, InputError
from autotune.spec.measured import MeasuredRun, SkippedRun, read_runs
from autotune.trials.paths import write_atomically
from autotune.workflow.problem import attempt


@dataclass(frozen=True, kw_only=True, slots=True)
class AccuracyRequest:
    """files: CSVs of measured runs, none for those of the package; calibrate: layouts of each sweep to fit on first."""

    files: tuple[Path, ...] = ()
    calibrate: int = 0


def accuracy(request: AccuracyRequest) -> AccuracyReport:
    """Read, predict, score. Raises InputError with the faults of all files."""
    files = request.files or shipped_files()
    faults: list[Fault] = []
    runs: list[MeasuredRun] = []
    skipped: list[SkippedRun] = []
    for path in files:
        found = attempt(faults, lambda path=path: read_runs(path, shipped_assumptions()))  # type: ignore[misc]
        if found is not None:
            runs.extend(found[0])
            skipped.extend(found[1])
    faults.extend(_doubled(runs, skipped))
    if request.calibrate < 0:
        faults.append(Fault(where="--calibrate", message=f"{request.calibrate} is below 0; give how many layouts"))
    if faults:
        raise InputError(faults)
    return accuracy_report(files, runs, skipped, calibrate=request.calibrate)


def write_accuracy_files(
    report: AccuracyReport, *, markdown: Path | None = None, plots: Path | None = None
) -> tuple[Path, ...]:
    """Write the files that are asked for, each by rename; which were written. The markdown shows the plots."""
    written: list[Path] = []
    if plots is not None:
        for name, content in accuracy_plots(report).items():
            write_atomically(plots / name, content)
            written.append(plots / name)
    if markdown is not None:
        shown = [_from(path, markdown.parent) for path in written]
        write_atomically(markdown, accuracy_markdown(report, plots=shown))
        written.append(markdown)
    return tuple(written)


def _from(path: Path, folder: Path) -> str:
    """The path as a link in a file of that folder."""
    if path.resolve().is_relative_to(folder.resolve()):
        return path.resolve().relative_to(folder.resolve()).as_posix()
    return path.as_posix()


def _doubled(runs: Sequence[MeasuredRun], skipped: Sequence[SkippedRun]) -> list[Fault]:
    """A run that two files hold would be scored twice."""
    counts = Counter([*(run.run_id for run in runs), *(run.run_id for run in skipped)])
    return [
        Fault(where=run_id, message="this run_id is in two of the files; give one of them")
        for run_id, count in counts.items()
        if count > 1
    ]
