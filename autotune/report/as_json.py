"""Answers as JSON data: the exact keys of `docs/files.md`. What is unknown is null; no number is infinite or NaN."""

import math
from typing import Any

from autotune.report.document import (
    SCHEMA_VERSION,
    AxisDocument,
    CheckDocument,
    LayoutDetails,
    LayoutDocument,
    ModelDocument,
    PeakMemoryDocument,
    PlacedLayoutDocument,
    ReasonDocument,
    ReportDetails,
    ReportDocument,
    SpaceDocument,
    StepTimeDocument,
    TuneDocument,
)
from autotune.report.ranked import RankedLayout, Report
from autotune.spec.axes import AXIS_NAMES
from autotune.spec.load import JsonObject, to_json


def tune_json(report: Report) -> JsonObject:
    """The answer of `tune --json`."""
    return _ordered(to_json(TuneDocument(**_tune_fields(report))))


def report_json(report: Report) -> JsonObject:
    """The file report.json: the answer of `tune --json`, and under "details" what it takes to render it again."""
    return _ordered(to_json(ReportDocument(**_tune_fields(report), details=_details(report))))


def check_json(ranked: RankedLayout, *, parameters: int, active_parameters: int, tool_version: str) -> JsonObject:
    """The answer of `check --json`: one layout, and the size of the model."""
    model = ModelDocument(parameters=parameters, active_parameters=active_parameters)
    document = CheckDocument(
        **_layout_fields(ranked), schema_version=SCHEMA_VERSION, tool_version=tool_version, model=model
    )  # fmt: skip
    return _first(to_json(document), "schema_version", "tool_version")


def _tune_fields(report: Report) -> dict[str, Any]:
    space = report.space
    return {
        "schema_version": SCHEMA_VERSION,
        "tool_version": report.tool_version,
        "layouts": [_placed(ranked) for ranked in report.layouts],
        "winner": _placed(report.winner) if report.winner is not None else None,
        "space": SpaceDocument(
            enumerated=space.enumerated,
            valid=space.valid,
            invalid=dict(space.invalid),
            infeasible=space.infeasible,
        ),
        "run": report.run,
    }


def _placed(ranked: RankedLayout) -> PlacedLayoutDocument:
    return PlacedLayoutDocument(**_layout_fields(ranked), place=ranked.place)


def _layout_fields(ranked: RankedLayout) -> dict[str, Any]:
    """The fields of a LayoutDocument."""
    document = LayoutDocument(
        key=ranked.key,
        layout={
            name: AxisDocument(value=getattr(ranked.layout, name), origin=ranked.origins[name]) for name in AXIS_NAMES
        },
        step_time_s=StepTimeDocument(
            predicted=_finite(ranked.predicted_s),
            low=_finite(ranked.low_s),
            high=_finite(ranked.high_s),
            measured=_finite(ranked.measured_s),
        ),
        peak_memory_bytes=PeakMemoryDocument(
            predicted=_finite(ranked.peak_bytes),
            upper=_finite(ranked.upper_bytes),
            measured=_finite(ranked.measured_peak_bytes),
            limit=ranked.limit_bytes,
        ),
        oom_probability=_finite(ranked.oom_probability),
        memory=dict(ranked.memory_bytes) or None,
        time=dict(ranked.time_s) or None,
        verdict=ranked.verdict,
        reasons=[
            ReasonDocument(code=reason.code, axes=list(reason.axes), message=reason.message)
            for reason in ranked.reasons
        ],
        basis=ranked.basis,
    )
    return {name: getattr(document, name) for name in LayoutDocument.__dataclass_fields__}


def _details(report: Report) -> ReportDetails:
    return ReportDetails(
        problem=report.problem,
        engine=report.engine,
        command=report.command,
        limit_bytes=report.limit_bytes,
        nearest_miss=report.nearest_miss.key if report.nearest_miss is not None else None,
        warnings=list(report.warnings),
        notes=list(report.notes),
        calibration=report.calibration,
        stop_reason=report.stop_reason,
        elapsed_s=report.elapsed_s,
        versions=dict(report.versions),
        layouts={
            ranked.key: LayoutDetails(
                fullest_stage=ranked.fullest_stage,
                tokens_per_s_per_gpu=_finite(ranked.tokens_per_s_per_gpu),
                mfu=_finite(ranked.mfu),
                baseline=ranked.baseline,
            )
            for ranked in report.layouts
        },
    )


def _ordered(document: JsonObject) -> JsonObject:
    """The place of a layout in front of its other keys, for people."""
    winner = document["winner"]
    return document | {
        "layouts": [_first(layout, "place") for layout in document["layouts"]],
        "winner": _first(winner, "place") if winner is not None else None,
    }


def _first(data: JsonObject, *names: str) -> JsonObject:
    return {name: data[name] for name in names} | data


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None
