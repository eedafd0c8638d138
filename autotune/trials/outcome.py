"""Outcome: turns a trial folder into Measured or Failed, refuses results that cannot be true, and keeps the verdict."""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter

from autotune.errors import InputError
from autotune.spec.load import from_json
from autotune.spec.outcome import Failed, Measured, Status, TrialResult, TrialSpec
from autotune.trials.folder import (
    OUTCOME,
    RESULT,
    last_phase,
    one_line,
    rank_files,
    read_launcher_report,
)
from autotune.trials.paths import write_atomically

_MEASURED = "measured"
_KILLED = (-9, 137)
"""Ended by SIGKILL: as subprocess and as a shell report it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _RankFailure:
    """rank-R.json. phase: what the rank was doing, "" if it does not say."""

    status: Literal["out-of-memory", "crash", "invalid"]
    message: str
    phase: str = ""


def read_outcome(
    folder: Path, *, exit_code: int | None, timed_out: bool, time_limit_s: float | None = None
) -> TrialResult:
    """What became of the trial in `folder`, read before its processes are ended: they may write more when they die.

    An out-of-memory on any rank comes first, whatever else is there. Then a result: a rank that fails in tear-down
    after it takes nothing away. exit_code: the launcher's, None while it runs.
    """
    failures = _rank_failures(folder)
    if failures and failures[0].status is Status.OOM:
        return failures[0]
    if (folder / RESULT).exists():
        return _read_result(folder / RESULT)
    if failures and failures[0].status is Status.INVALID:
        return failures[0]
    killed = _killed_from_outside(folder, exit_code)
    if killed is not None:  # then the other ranks' crashes ("connection closed by peer") only follow from it
        return killed
    if failures:
        return failures[0]
    if timed_out:
        limit = "in time" if time_limit_s is None else f"after {time_limit_s:g} s"
        return Failed(status=Status.TIMEOUT, evidence=f"no result {limit}; {last_phase(folder)}")
    return _ended_without_a_word(folder, exit_code)


_PRECEDENCE = {Status.OOM: 0, Status.INVALID: 1, Status.CRASH: 2, Status.GARBAGE: 2}


def _rank_failures(folder: Path) -> list[Failed]:
    """The failures that ranks reported: out-of-memory before invalid before the rest, the first one written first."""
    found = []
    for rank, path in rank_files(folder, "json").items():
        failure = _read_rank_failure(rank, path)
        found.append((_PRECEDENCE[failure.status], path.stat().st_mtime_ns, rank, failure))
    return [failure for *_, failure in sorted(found, key=lambda entry: entry[:3])]


def _read_rank_failure(rank: int, path: Path) -> Failed:
    try:
        failure = TypeAdapter(_RankFailure).validate_json(path.read_bytes())
    except ValueError as error:
        evidence = f"rank-{rank}: it failed, but its {path.name} cannot be read: {one_line(str(error))}"
        return Failed(status=Status.GARBAGE, evidence=evidence)
    where = f"rank-{rank} in {failure.phase}" if failure.phase else f"rank-{rank}"
    return Failed(status=Status(failure.status), evidence=f"{where}: {one_line(failure.message)}")


def _read_result(path: Path) -> TrialResult:
    try:
        measured = from_json(Measured, json.loads(path.read_bytes()), where=path.name)
    except (ValueError, RecursionError, InputError) as error:
        return Failed(status=Status.GARBAGE, evidence=f"{path.name} cannot be read: {one_line(str(error))}")
    if not measured.ranks or not measured.step_times_s:
        return Failed(status=Status.GARBAGE, evidence=f"{path.name} has no ranks or no measured steps")
    if not all(0 < step_time_s < math.inf for step_time_s in measured.step_times_s):
        evidence = f"{path.name} has step times that are not positive seconds: {measured.step_times_s}"
        return Failed(status=Status.GARBAGE, evidence=evidence)
    return measured


def _killed_from_outside(folder: Path, exit_code: int | None) -> Failed | None:
    report = read_launcher_report(folder)
    who = "the launcher" if report.rank is None else f"rank-{report.rank}"
    code = exit_code if report.exit_code is None else report.exit_code
    if code not in _KILLED:
        return None
    evidence = f"{who}: killed by SIGKILL (exit code {code}); most likely the host ran out of memory"
    return Failed(status=Status.CRASH, evidence=evidence)


def _ended_without_a_word(folder: Path, exit_code: int | None) -> Failed:
    report = read_launcher_report(folder)
    who = "the launcher" if report.rank is None else f"rank-{report.rank}"
    code = exit_code if report.exit_code is None else report.exit_code
    ending = f"{who} ended with exit code {code}" if code is not None else "it was ended"
    words = f": {report.last_line}" if report.last_line else ""
    if not code:
        return Failed(status=Status.NO_RESULT, evidence=f"{ending} and left no result{words}")
    if not rank_files(folder, "pid"):
        return Failed(status=Status.LAUNCH, evidence=f"{ending} before a rank had started{words}")
    return Failed(status=Status.CRASH, evidence=f"{ending}{words}")


def check_measured(measured: Measured, spec: TrialSpec, *, expected_parameters: int | None) -> TrialResult:
    """The same result, or why it is refused: it is not of the trial that was asked, or its numbers are not numbers.

    expected_parameters: of the whole model; None: not checked.
    """
    ranks = sorted(report.rank for report in measured.ranks)
    if ranks != list(range(spec.world_size)):
        evidence = f"ranks {ranks} reported, {spec.world_size} processes were asked for"
        return Failed(status=Status.REFUSED, evidence=evidence)
    if expected_parameters is not None and measured.parameters != expected_parameters:
        evidence = (
            f"the layout holds {measured.parameters} parameters, the model has {expected_parameters}: "
            "a part of it was left out or counted twice"
        )
        return Failed(status=Status.REFUSED, evidence=evidence)
    for name, values in (("loss", measured.losses), ("gradient norm", measured.gradient_norms)):
        for step, value in enumerate(values):
            if not math.isfinite(value):
                return Failed(status=Status.CRASH, evidence=f"{name} of step {step} is {value}")
    return measured


def model_flops_utilization(
    measured: Measured, *, model_flops_per_step: float, peak_flops_per_s: float, processes: int
) -> float:
    """MFU = F / (t * n * peak), 1.0 is 100 %. Chowdhery et al. 2022 (2204.02311), appendix B.

    F: operations of the model in a step, recomputation not counted; peak: of one process, dense, from the datasheet.
    """
    return model_flops_per_step / (measured.step_time_s * processes * peak_flops_per_s)


def refuse_impossible_speed(
    measured: Measured, *, model_flops_per_step: float, peak_flops_per_s: float, processes: int
) -> TrialResult:
    """The same result, or Failed if its MFU is above 100 %: then the count, the clock or the work done is wrong.

    peak_flops_per_s must be a true upper bound. A rate that was measured as sustained is none.
    """
    utilization = model_flops_utilization(
        measured, model_flops_per_step=model_flops_per_step, peak_flops_per_s=peak_flops_per_s, processes=processes
    )
    if utilization <= 1.0:
        return measured
    evidence = (
        f"MFU {utilization:.0%} is above 100 %: {model_flops_per_step:.3g} FLOP in {measured.step_time_s:.3g} s on "
        f"{processes} x {peak_flops_per_s:.3g} FLOP/s; the trial did less work than counted, or the count is wrong"
    )
    return Failed(status=Status.REFUSED, evidence=evidence)


def write_finished(folder: Path, result: TrialResult) -> None:
    """Keep how the trial ended: from now on it is finished. What was measured stays in result.json."""
    match result:
        case Measured():
            document = {"status": _MEASURED}
        case Failed(status=status, evidence=evidence):
            document = {"status": status.value, "evidence": evidence}
    write_atomically(folder / OUTCOME, json.dumps(document, indent=2) + "\n")


def read_finished(folder: Path) -> TrialResult | None:
    """How the trial ended; None if it has not, or if what is there cannot be read, so that it must run again."""
    try:
        document = json.loads((folder / OUTCOME).read_bytes())
        if document["status"] != _MEASURED:
            return Failed(status=Status(document["status"]), evidence=str(document["evidence"]))
        result = _read_result(folder / RESULT)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return result if isinstance(result, Measured) else None
