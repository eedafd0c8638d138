"""Accuracy after calibration: the first K layouts of a sweep are measured, the factors fitted, the rest predicted."""

from collections.abc import Sequence
from dataclasses import dataclass

from autotune.accuracy.predict import predict
from autotune.accuracy.prediction import OUTSIDE_PART, PredictedRun
from autotune.accuracy.sweeps import sweeps_of
from autotune.calibration.fit import calibrate
from autotune.calibration.observation import Observation
from autotune.cost.profile import Factors
from autotune.spec.measured import MemoryKind


@dataclass(frozen=True, kw_only=True, slots=True)
class Calibrated:
    """rest: predicted with the factors of their sweep; taken: what these were fitted to, and repeats of it."""

    rest: tuple[PredictedRun, ...]
    taken: tuple[PredictedRun, ...]


def calibrate_sweeps(rows: Sequence[PredictedRun], first: int) -> Calibrated:
    """Each sweep apart: fit on the first layouts in the order a search runs them, and predict the others again.

    A sweep with no more than that many layouts has nothing left to score.
    """
    rest: list[PredictedRun] = []
    taken: list[PredictedRun] = []
    factors: dict[str, Factors] = {}
    for members in sweeps_of(rows).values():
        chosen = _first_layouts(members, first)
        others = [row for row in members if row.run.layout.key not in chosen]
        taken.extend(row for row in members if row.run.layout.key in chosen)
        if others:
            fitted = _fit(list(chosen.values()))
            factors.update((row.run.run_id, fitted) for row in others)
            rest.extend(others)
    again, _ = predict([row.run for row in rest], factors)
    return Calibrated(rest=tuple(again), taken=tuple(taken))


def search_order(rows: Sequence[PredictedRun]) -> list[PredictedRun]:
    """As a search would run them: what is predicted to fit first, the fastest first."""
    return sorted(rows, key=lambda row: (row.out_of_memory, row.step_time_s, row.run.run_id))


def _first_layouts(rows: Sequence[PredictedRun], first: int) -> dict[str, PredictedRun]:
    """The first run of each of the first distinct layouts that have something to learn from."""
    chosen: dict[str, PredictedRun] = {}
    for row in search_order([row for row in rows if _teaches(row)]):
        if len(chosen) == first:
            break
        chosen.setdefault(row.run.layout.key, row)
    return chosen


def _teaches(row: PredictedRun) -> bool:
    return row.measured_step_time_s is not None or row.measured_bytes is not None or bool(row.run.oom)


def _fit(rows: Sequence[PredictedRun]) -> Factors:
    def observed(factors: Factors) -> list[Observation]:
        predicted, _ = predict([row.run for row in rows], factors)
        return [observation(row) for row in predicted]

    return calibrate(observed)


def observation(row: PredictedRun) -> Observation:
    """The row as a fit needs it: what the framework held, with the allocator's slack that the prediction has in it."""
    outside_bytes = row.memory_parts_bytes[OUTSIDE_PART]
    died = bool(row.run.oom)
    return Observation(
        time_parts_s=row.time_parts_s,
        memory_parts_bytes=row.memory_parts_bytes,
        predicted_with=row.factors,
        step_time_s=None if died else row.measured_step_time_s,
        time_counts=not died,
        framework_bytes=None if died else _framework_bytes(row),
        exceeded_bytes=row.limit_bytes - outside_bytes if died else None,
    )


def _framework_bytes(row: PredictedRun) -> float | None:
    measured = row.measured_bytes
    if measured is None:
        return None
    match row.run.memory_kind:
        case MemoryKind.ALLOCATED:
            return measured * (1 + row.profile.allocator_slack.value)
        case MemoryKind.DEVICE:
            return max(measured - row.memory_parts_bytes[OUTSIDE_PART], 0.0) or None
        case MemoryKind.RESERVED:
            return measured
        case MemoryKind.UNKNOWN:
            return None
