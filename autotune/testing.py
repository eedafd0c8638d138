"""Contract tests: what every implementation of a seam must do, as classes to inherit from in a test file."""

import ast
import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np

from autotune.engines.protocol import Engine, LaunchFiles, Prediction
from autotune.space.arithmetic_rules import COMMON_RULES
from autotune.space.rules import Rule, broken_rules
from autotune.spec.axes import AXES, AXIS_NAMES, AxisKind
from autotune.spec.layout import Layout, LayoutTable
from autotune.spec.load import from_json
from autotune.spec.outcome import Failed, Measured, TrialSpec
from autotune.spec.schedules import SCHEDULES
from autotune.spec.workload import Problem
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


HOSTILE_NAME = "$(touch marker)\"'`touch marker`\n touch marker; \u2028touch marker\n{{ 7 * 7 }} \\"
"""A model name as a hostile file may hold it."""

_COMMANDS = ("torchrun", "srun", "scontrol", "python3")


class EngineContract:
    """Every Engine: says every axis, gives a reason for every no, and writes files that any model name leaves harmless.

    Give the methods, the rest is inherited.
    """

    def engine(self) -> Engine:
        """The engine."""
        raise NotImplementedError

    def variations(self) -> dict[str, tuple[Problem, Layout, Layout]]:
        """For each axis that the engine can vary, two legal layouts that differ in it, and as little else as can be."""
        raise NotImplementedError

    def broken(self) -> dict[str, tuple[Problem, Layout]]:
        """For each rule and launch rule by code, a layout that the rule refuses."""
        raise NotImplementedError

    def fixed_axes(self) -> frozenset[str]:
        """Axes of which the engine knows one value alone; a rule about that axis and no other refuses the rest."""
        return frozenset()

    def environment(self, folder: Path) -> dict[str, str]:
        """What the user sets before a launch script runs."""
        return {}

    def test_every_axis_is_varied_or_fixed(self) -> None:
        """None is forgotten when an axis is added."""
        assert {*self.variations(), *self.fixed_axes()} == set(AXIS_NAMES)

    def test_the_variations_are_legal_and_differ_in_their_axis(self) -> None:
        """By the rules of arithmetic and the engine's."""
        for axis, (problem, *layouts) in self.variations().items():
            assert getattr(layouts[0], axis) != getattr(layouts[1], axis)
            for layout in layouts:
                assert broken_rules(LayoutTable.of([layout]), 0, problem, self._all_rules()) == (), axis

    def test_no_axis_is_lost_in_the_files(self) -> None:
        """Another value gives other files, comments aside."""
        for axis, (problem, one, other) in self.variations().items():
            assert _without_comments(self._files(one, problem)) != _without_comments(self._files(other, problem)), axis

    def test_a_fixed_axis_has_a_rule_of_its_own(self) -> None:
        """So that no other value reaches the files."""
        for axis in self.fixed_axes():
            assert any(rule.axes == (axis,) for rule in self.engine().rules), axis

    def test_each_rule_has_an_example_and_its_sentence_names_the_value(self) -> None:
        """The sentence holds the layout's value of an axis of the rule, or for a launch rule the problem's."""
        assert set(self.broken()) == {rule.code for rule in self._own_rules()}
        for code, (problem, layout) in self.broken().items():
            reasons = broken_rules(LayoutTable.of([layout]), 0, problem, self._own_rules())
            (reason,) = [reason for reason in reasons if reason.code == code]
            if reason.axes:
                assert any(str(getattr(layout, axis)) in reason.message for axis in reason.axes), reason.message
            assert len(reason.message.split()) > 8, reason.message
            assert "np." not in reason.message, reason.message

    def test_rules_name_real_axes_and_read_no_other(self) -> None:
        """The enumerator fills the columns that a rule does not name with zeros."""
        examples = [(problem, layout) for problem, *layouts in self.variations().values() for layout in layouts]
        examples += list(self.broken().values())
        for rule in self._own_rules():
            assert set(rule.axes) <= set(AXIS_NAMES), rule.code
            for problem, layout in examples:
                whole = LayoutTable.of([layout])
                assert rule.holds(whole, problem)[0] == rule.holds(_only(whole, rule.axes), problem)[0], rule.code

    def test_schedules_and_defaults_are_known(self) -> None:
        """By the names of the spec."""
        engine = self.engine()
        assert engine.schedules
        assert set(engine.schedules) <= set(SCHEDULES)
        assert set(engine.defaults) <= set(AXIS_NAMES)

    def test_the_files_are_well_formed(self, tmp_path: Path) -> None:
        """Shell, Python and JSON each pass their own parser, with an ordinary and with a hostile model name."""
        for problem, *layouts in self.variations().values():
            for layout in layouts:
                for asked in (problem, _renamed(problem)):
                    _check_syntax(self._files(layout, asked), tmp_path)

    def test_a_hostile_model_name_runs_nothing(self, tmp_path: Path) -> None:
        """The scripts run to their end with stand-ins for the launchers, and nothing in the name is executed."""
        commands = tmp_path / "commands"
        commands.mkdir()
        for name in _COMMANDS:
            (commands / name).write_text("#!/bin/sh\nexit 0\n")
            (commands / name).chmod(0o755)
        for number, (problem, layout, _) in enumerate(self.variations().values()):
            folder = tmp_path / str(number)
            folder.mkdir()
            _write(self._files(layout, _renamed(problem)), folder)
            environment = {"PATH": f"{commands}{os.pathsep}{os.defpath}", "MASTER_ADDR": "localhost"}
            for script in folder.glob("*.sh"):
                subprocess.run(
                    ["bash", str(script)],
                    cwd=folder,
                    env=environment | self.environment(folder),
                    check=True,
                    timeout=30,
                )
            assert not list(tmp_path.rglob("marker"))

    def _own_rules(self) -> tuple[Rule, ...]:
        return (*self.engine().rules, *self.engine().launch_rules)

    def _all_rules(self) -> tuple[Rule, ...]:
        return (*COMMON_RULES, *self._own_rules())

    def _files(self, layout: Layout, problem: Problem) -> LaunchFiles:
        prediction = Prediction(
            step_time_s=1.5,
            peak_memory_bytes=2.0**36,
            limit_bytes=2.0**37,
            basis="datasheet",
            command="autotune export",
        )
        return self.engine().write(layout, problem, prediction)


def _renamed(problem: Problem) -> Problem:
    return replace(problem, model=replace(problem.model, name=HOSTILE_NAME))


def _only(table: LayoutTable, axes: tuple[str, ...]) -> LayoutTable:
    """The table with zeros in every other column."""
    flags = {axis.name for axis in AXES if axis.kind is AxisKind.FLAG}
    others = [name for name in AXIS_NAMES if name not in axes]
    return replace(table, **{name: np.zeros(len(table), dtype=bool if name in flags else int) for name in others})


def _without_comments(files: LaunchFiles) -> dict[str, list[str]]:
    return {
        str(path): [line for line in text.splitlines() if not line.startswith("#") or line.startswith("#SBATCH")]
        for path, text in files.items()
    }


def _write(files: LaunchFiles, folder: Path) -> None:
    for path, text in files.items():
        (folder / path).write_text(text, encoding="utf-8")


def _check_syntax(files: LaunchFiles, folder: Path) -> None:
    _write(files, folder)
    for path, text in files.items():
        match path.suffix:
            case ".sh":
                subprocess.run(["bash", "-n", str(folder / path)], check=True, timeout=30)
            case ".py":
                ast.parse(text)
            case ".json":
                json.loads(text)
            case suffix:
                raise AssertionError(suffix)
