"""Engine: all that differs between training frameworks, one instance a module. Nothing else knows an engine's name."""

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Protocol

from autotune.cost.profile import MemoryProfile
from autotune.space.rules import Rule
from autotune.spec.axes import AxisValue
from autotune.spec.cluster import Device
from autotune.spec.layout import Layout
from autotune.spec.workload import Problem


@dataclass(frozen=True, kw_only=True, slots=True)
class Prediction:
    """What a launch file's header says of the layout: the numbers, their basis, and the command that made the file."""

    step_time_s: float
    peak_memory_bytes: float
    limit_bytes: float
    basis: str
    command: str


LaunchFiles = dict[PurePosixPath, str]


class Engine(Protocol):
    """A training framework.

    versions: the range that rules and flags were checked against; schedules: those it runs, by our names; defaults:
    what it does with an axis that the user does not give; runs_trials: it has a runner.
    """

    @property
    def name(self) -> str:
        """As given to --engine and --to."""

    @property
    def versions(self) -> str:
        """E.g. "core_v0.15 – core_v0.16"."""

    @property
    def schedules(self) -> tuple[str, ...]:
        """Schedules it runs."""

    @property
    def rules(self) -> tuple[Rule, ...]:
        """What it refuses, beyond the rules of arithmetic in `space.rules`."""

    @property
    def launch_rules(self) -> tuple[Rule, ...]:
        """What can be ranked for it but not launched: a model or precision that its files cannot say or it cannot run.

        They decide whether `export` writes files, and for an engine that runs trials whether those can be asked for.
        """

    @property
    def memory(self) -> MemoryProfile:
        """Its memory habits on GPUs."""

    def memory_on(self, device: Device) -> MemoryProfile:
        """Its memory habits on that kind of device."""

    @property
    def defaults(self) -> dict[str, AxisValue]:
        """Its defaults for axes that a user does not give; an axis not named here is off.

        The name of another axis as the value means "as many as that one".
        """

    @property
    def runs_trials(self) -> bool:
        """Whether `tune --trials` can run it."""

    def write(self, layout: Layout, problem: Problem, prediction: Prediction) -> LaunchFiles:
        """Launch files by relative path. Every axis is written, also the 1s."""
