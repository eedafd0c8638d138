"""TorchrunRunner: runs a trial on this machine, one fresh process tree under torchrun for each."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from autotune.errors import EnvironmentFaultError
from autotune.spec.load import to_json
from autotune.spec.outcome import Failed, Measured, Status, TrialResult, TrialSpec
from autotune.trials.folder import TRIAL, clear_trial
from autotune.trials.outcome import check_measured, write_finished
from autotune.trials.paths import write_atomically
from autotune.trials.supervise import end_leftovers, supervise


@dataclass(frozen=True, kw_only=True, slots=True)
class TorchrunRunner:
    """A `Runner`. python: the interpreter that has torch and this package.

    environment: the whole environment of the trial's processes; module: what each rank runs; expected_parameters: of
    the whole model, a result with another count is refused.
    """

    python: Path
    environment: Mapping[str, str]
    module: str = "autotune.worker"
    expected_parameters: int | None = None

    def run(self, spec: TrialSpec, folder: Path, *, time_limit_s: float) -> TrialResult:
        """Run the trial in `folder`, from the beginning if an earlier attempt was broken off there."""
        if spec.nodes != 1:
            evidence = f"{spec.nodes} nodes were asked for, and this runner starts processes on its own machine alone"
            return Failed(status=Status.LAUNCH, evidence=evidence)
        end_leftovers(folder)
        _prepare(spec, folder)
        result = supervise(
            self.command(spec, folder), folder,
            python=self.python, environment=self.environment, time_limit_s=time_limit_s,
        )  # fmt: skip
        if isinstance(result, Measured):
            result = check_measured(result, spec, expected_parameters=self.expected_parameters)
        write_finished(folder, result)
        return result

    def command(self, spec: TrialSpec, folder: Path) -> list[str]:
        """The command line that runs the trial."""
        return [
            str(self.python), "-m", "torch.distributed.run", "--standalone",
            "--nproc-per-node", str(spec.processes_per_node), "--max-restarts", "0",
            "-m", self.module, "trial", "--folder", str(folder.absolute()),
        ]  # fmt: skip


def _prepare(spec: TrialSpec, folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        clear_trial(folder)
    except OSError as error:
        msg = f"{folder}: cannot be made ready for a trial ({error.strerror}); give another --out"
        raise EnvironmentFaultError(msg) from error
    write_atomically(folder / TRIAL, json.dumps(to_json(spec), indent=2) + "\n")
