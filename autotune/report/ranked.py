"""RankedLayout, SpaceSummary, Report: what a command answers, ready to be rendered as a table, Markdown or JSON."""

from dataclasses import dataclass, field

from autotune.cost.profile import Factors
from autotune.space.rules import Reason
from autotune.spec.figure import Basis
from autotune.spec.layout import Layout
from autotune.spec.outcome import TrialResult
from autotune.spec.verdict import Origin, Verdict
from autotune.spec.workload import Problem


@dataclass(frozen=True, kw_only=True, slots=True)
class RankedLayout:
    """One layout and all that is known of it; None: unknown.

    place: from 1 on; None where it does not rank, because it is invalid, does not fit or failed. low_s, high_s: the
    interval around predicted_s in which the step time is expected. memory_bytes, time_s: by part, for the fullest
    pipeline stage and for a step; empty for an invalid layout. measured_peak_bytes: what the framework held on the
    fullest rank of a trial, without what lives outside it. basis: of the number that ranks. result: of its trial.
    tokens_per_s_per_gpu, mfu: at the number that ranks; mfu is None without a datasheet peak.
    """

    place: int | None = None
    layout: Layout
    origins: dict[str, Origin]
    predicted_s: float | None = None
    low_s: float | None = None
    high_s: float | None = None
    measured_s: float | None = None
    memory_bytes: dict[str, float] = field(default_factory=dict)
    time_s: dict[str, float] = field(default_factory=dict)
    peak_bytes: float | None = None
    upper_bytes: float | None = None
    limit_bytes: float
    measured_peak_bytes: float | None = None
    fullest_stage: int | None = None
    oom_probability: float | None = None
    verdict: Verdict
    reasons: tuple[Reason, ...] = ()
    basis: Basis | None = None
    result: TrialResult | None = None
    baseline: bool = False
    tokens_per_s_per_gpu: float | None = None
    mfu: float | None = None

    @property
    def key(self) -> str:
        """The layout's canonical name."""
        return self.layout.key

    @property
    def ranking_s(self) -> float | None:
        """The step time that ranks: the measured one where that is the basis, else the predicted one."""
        return self.measured_s if self.basis is Basis.MEASURED else self.predicted_s


@dataclass(frozen=True, kw_only=True, slots=True)
class SpaceSummary:
    """What became of the combinations of a search space.

    enumerated: all of them; valid: legal layouts; invalid: rejected combinations by the rule that they broke first, so
    enumerated = valid + the sum of invalid; infeasible: legal layouts that do not fit.
    """

    enumerated: int
    valid: int
    invalid: dict[str, int]
    infeasible: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """The answer of `tune`.

    layouts: the best by place, all that ran and the baseline; when nothing fits, also the nearest miss. winner: see
    `ranking.Ranking`; None when nothing fits. run: the run folder, None where nothing was kept. calibration: the
    factors in the predictions, None where no trial could count. stop_reason: why the search for real ended.
    """

    problem: Problem
    engine: str
    command: str
    tool_version: str
    space: SpaceSummary
    layouts: tuple[RankedLayout, ...]
    winner: RankedLayout | None
    nearest_miss: RankedLayout | None = None
    limit_bytes: float
    run: str | None = None
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    calibration: Factors | None = None
    stop_reason: str | None = None
    elapsed_s: float
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def ran(self) -> tuple[RankedLayout, ...]:
        """The layouts with a trial, in the order of the report."""
        return tuple(ranked for ranked in self.layouts if ranked.result is not None)
