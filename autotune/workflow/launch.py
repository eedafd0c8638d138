"""Launch files: of a run's winner when it ends, and of any place of a run on request."""

from pathlib import Path

from autotune.engines.export import why_not_launched, write_launch_files
from autotune.engines.protocol import Engine, LaunchFiles, Prediction
from autotune.engines.registry import EXPORTERS
from autotune.errors import InputError, NoAnswerError
from autotune.report.ranked import RankedLayout, Report
from autotune.report.read import read_report
from autotune.trials.paths import RunFolder, write_atomically
from autotune.trials.runs import read_trials


def read_run(root: Path) -> Report:
    """The report of a run folder. Raises InputError if it is none, or if its report is broken."""
    run = RunFolder(root=root)
    if not run.report_json.exists():
        message = "holds no report.json; give the folder of a finished `autotune tune`"
        raise InputError.one(message, where=str(root))
    return read_report(run.report_json, {trial.key: trial.result for trial in read_trials(run)})


def export(root: Path, *, place: int, target: str, out: Path, command: str) -> tuple[Path, ...]:
    """Write the launch files of one place of a run. Returns their paths.

    Raises InputError for an unknown place or target, NoAnswerError with every reason why the target cannot run it.
    """
    report = read_run(root)
    ranked = _at_place(report, place, where=str(root))
    files = write_launch_files(target, ranked.layout, report.problem, prediction_of(ranked, command))
    return _write(files, out)


def write_winner(report: Report, engine: Engine, run: RunFolder) -> tuple[str, ...]:
    """Write the winner's launch files into the run folder. Returns why not, in a sentence, where that cannot be."""
    if report.winner is None:
        return ()
    target = next(name for name, exporter in EXPORTERS.items() if exporter is engine)
    reasons = why_not_launched(engine, report.winner.layout, report.problem)
    if reasons:
        return (f"no launch files for {target}: " + "; ".join(reason.message for reason in reasons),)
    prediction = prediction_of(report.winner, report.command)
    _write(write_launch_files(target, report.winner.layout, report.problem, prediction), run.launch)
    return ()


def prediction_of(ranked: RankedLayout, command: str) -> Prediction:
    """What the header of a launch file says of the layout: the numbers that rank."""
    step_time_s = ranked.ranking_s
    if step_time_s is None or ranked.peak_bytes is None or ranked.basis is None:
        msg = f"{ranked.key} is {ranked.verdict}: nothing is predicted of it, so there is nothing to launch"
        raise NoAnswerError(msg)
    return Prediction(
        step_time_s=step_time_s,
        peak_memory_bytes=ranked.peak_bytes,
        limit_bytes=ranked.limit_bytes,
        basis=ranked.basis.value,
        command=command,
    )


def _at_place(report: Report, place: int, *, where: str) -> RankedLayout:
    for ranked in report.layouts:
        if ranked.place == place:
            return ranked
    places = [ranked.place for ranked in report.layouts if ranked.place is not None]
    if not places:
        msg = f"{where}: nothing fits in this run, so no layout has a place"
        raise NoAnswerError(msg)
    message = f"the report holds no place {place}; it holds {min(places)} to {max(places)}; see more with tune --top"
    raise InputError.one(message, where="--place")


def _write(files: LaunchFiles, out: Path) -> tuple[Path, ...]:
    written = []
    for name, content in files.items():
        path = out / name
        write_atomically(path, content)
        if path.suffix == ".sh":
            path.chmod(0o755)
        written.append(path)
    return tuple(written)
