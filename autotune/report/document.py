"""The JSON documents that we write, as dataclasses; `docs/files.md` shows them. None is null and means "unknown".

A changed or removed key needs a new SCHEMA_VERSION; an added one does not.
"""

from dataclasses import dataclass

from autotune.cost.profile import Factors
from autotune.spec.axes import AxisValue
from autotune.spec.figure import Basis
from autotune.spec.verdict import Origin, Verdict
from autotune.spec.workload import Problem

SCHEMA_VERSION = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class AxisDocument:
    """The value of one axis."""

    value: AxisValue
    origin: Origin


@dataclass(frozen=True, kw_only=True, slots=True)
class StepTimeDocument:
    """Seconds of one optimizer step."""

    predicted: float | None
    low: float | None
    high: float | None
    measured: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class PeakMemoryDocument:
    """Bytes of the fullest stage."""

    predicted: float | None
    upper: float | None
    measured: float | None
    limit: float


@dataclass(frozen=True, kw_only=True, slots=True)
class ReasonDocument:
    """Why a layout has its verdict."""

    code: str
    axes: list[str]
    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class LayoutDocument:
    """One layout, in every command."""

    key: str
    layout: dict[str, AxisDocument]
    step_time_s: StepTimeDocument
    peak_memory_bytes: PeakMemoryDocument
    oom_probability: float | None
    memory: dict[str, float] | None
    time: dict[str, float] | None
    verdict: Verdict
    reasons: list[ReasonDocument]
    basis: Basis | None


@dataclass(frozen=True, kw_only=True, slots=True)
class SpaceDocument:
    """What became of the combinations."""

    enumerated: int
    valid: int
    invalid: dict[str, int]
    infeasible: int


@dataclass(frozen=True, kw_only=True, slots=True)
class LayoutDetails:
    """What report.json says of a layout beyond LayoutDocument."""

    fullest_stage: int | None
    tokens_per_s_per_gpu: float | None
    mfu: float | None
    baseline: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportDetails:
    """What report.json says of a run beyond the answer of `tune --json`. layouts: by layout key."""

    problem: Problem
    engine: str
    command: str
    limit_bytes: float
    nearest_miss: str | None
    warnings: list[str]
    notes: list[str]
    calibration: Factors | None
    stop_reason: str | None
    elapsed_s: float
    versions: dict[str, str]
    layouts: dict[str, LayoutDetails]


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelDocument:
    """Size of the network, in `check`."""

    parameters: int
    active_parameters: int


@dataclass(frozen=True, kw_only=True, slots=True)
class PlacedLayoutDocument(LayoutDocument):
    """One layout of `tune`."""

    place: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class TuneDocument:
    """The answer of `tune --json`."""

    schema_version: int
    tool_version: str
    layouts: list[PlacedLayoutDocument]
    winner: PlacedLayoutDocument | None
    space: SpaceDocument
    run: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportDocument(TuneDocument):
    """The file report.json."""

    details: ReportDetails


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckDocument(LayoutDocument):
    """The answer of `check --json`."""

    schema_version: int
    tool_version: str
    model: ModelDocument
