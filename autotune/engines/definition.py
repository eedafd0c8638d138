"""EngineDefinition: an Engine made of data and one function, so that an engine's module is a table and a writer."""

from collections.abc import Callable
from dataclasses import dataclass, field

from autotune.cost.profile import MemoryProfile
from autotune.engines.protocol import LaunchFiles, Prediction
from autotune.space.rules import Rule
from autotune.spec.axes import AxisValue
from autotune.spec.cluster import Device
from autotune.spec.layout import Layout
from autotune.spec.workload import Problem

Writer = Callable[[Layout, Problem, Prediction], LaunchFiles]


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineDefinition:
    """See `Engine`. cpu_memory: its habits on CPU processes, where it runs there; writer: what `write` does."""

    name: str
    versions: str
    schedules: tuple[str, ...]
    rules: tuple[Rule, ...]
    launch_rules: tuple[Rule, ...]
    memory: MemoryProfile
    writer: Writer
    cpu_memory: MemoryProfile | None = None
    defaults: dict[str, AxisValue] = field(default_factory=dict)
    runs_trials: bool = False

    def memory_on(self, device: Device) -> MemoryProfile:
        """The memory habits on that kind of device."""
        return self.cpu_memory if device == "cpu" and self.cpu_memory is not None else self.memory

    def write(self, layout: Layout, problem: Problem, prediction: Prediction) -> LaunchFiles:
        """Launch files by relative path."""
        return self.writer(layout, problem, prediction)
