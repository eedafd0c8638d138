"""Contract tests: what every implementation of a seam must do, as classes to inherit from in a test file."""

import json
from pathlib import Path

from autotune.spec.load import from_json
from autotune.spec.outcome import Failed, Measured, TrialSpec
from autotune.trials.folder import TRIAL
from autotune.trials.outcome import read_finished
from autotune.trials.processes import marked_processes
from autotune.trials.protocol import Runner
from autotune.trials.supervise import mark_of


class RunnerContract:
    """Every Runner: answers with a value, leaves no process, keeps what it was asked and how it ended.

    Give the three methods, the rest is inherited. The failing runner must not end by itself within 5 s.
    """

    def good_runner(self) -> Runner:
        """A runner whose trial ends well."""
        raise NotImplementedError

    def failing_runner(self) -> Runner:
        """A runner whose trial hangs."""
        raise NotImplementedError

    def trial(self) -> TrialSpec:
        """A trial for both."""
        raise NotImplementedError

    def test_a_good_trial_is_measured_on_every_process_and_kept(self, tmp_path: Path) -> None:
        """Measured, by as many ranks as were asked for."""
        spec, folder = self.trial(), tmp_path / "0001-a-layout"

        got = self.good_runner().run(spec, folder, time_limit_s=60)

        assert isinstance(got, Measured), got
        assert len(got.ranks) == spec.world_size
        assert read_finished(folder) == got
        _assert_left_in_order(folder, spec)

    def test_a_trial_that_fails_is_a_value_and_kept(self, tmp_path: Path) -> None:
        """Failed with evidence, no exception."""
        spec, folder = self.trial(), tmp_path / "0001-a-layout"

        got = self.failing_runner().run(spec, folder, time_limit_s=5)

        assert isinstance(got, Failed), got
        assert got.evidence
        assert read_finished(folder) == got
        _assert_left_in_order(folder, spec)


def _assert_left_in_order(folder: Path, spec: TrialSpec) -> None:
    assert from_json(TrialSpec, json.loads((folder / TRIAL).read_bytes())) == spec
    assert marked_processes(mark_of(folder)) == ()
