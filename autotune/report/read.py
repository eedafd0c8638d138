"""report.json back to a Report, so that a run can be rendered again."""

import json
from collections.abc import Mapping
from pathlib import Path

from autotune.errors import Fault, InputError
from autotune.report.document import (
    SCHEMA_VERSION,
    LayoutDetails,
    PlacedLayoutDocument,
    ReportDocument,
)
from autotune.report.ranked import RankedLayout, Report, SpaceSummary
from autotune.space.rules import Reason
from autotune.spec.layout import Layout
from autotune.spec.load import from_json
from autotune.spec.outcome import TrialResult

WAY_OUT = "give the folder of a run of `autotune tune`, or run the same command again to write it anew"


def read_report(path: Path, results: Mapping[str, TrialResult]) -> Report:
    """The report in a report.json. results: of the run's trials, by layout key; they lie beside it, not in it.

    Raises InputError with all faults if the file is missing, broken, or of another version.
    """
    data = _read(path)
    version = data.get("schema_version") if isinstance(data, dict) else None
    if version != SCHEMA_VERSION:
        found = "no schema_version" if version is None else f"schema_version {version}"
        message = f"has {found}, this autotune reads {SCHEMA_VERSION}; {WAY_OUT}"
        raise InputError.one(message, where=str(path))
    document = from_json(ReportDocument, data, where=str(path))
    faults = list(_faults(document, where=str(path)))
    if faults:
        raise InputError(faults)
    return _report(document, results)


def _read(path: Path) -> object:
    """The data in the file, which grows with the number of layouts that were asked for."""
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise InputError.one(f"does not exist; {WAY_OUT}", where=str(path)) from error
    except OSError as error:
        raise InputError.one(f"cannot be read ({error.strerror}); {WAY_OUT}", where=str(path)) from error
    except (ValueError, RecursionError) as error:
        raise InputError.one(f"is not JSON, it may be cut off ({error}); {WAY_OUT}", where=str(path)) from error


def _faults(document: ReportDocument, *, where: str) -> list[Fault]:
    """What the schema cannot say: layouts are what their keys say, and what is named is there."""
    faults = [
        Fault(where=where, key=f"layouts.{index}", message=f"is not the layout of its key {layout.key}; {WAY_OUT}")
        for index, layout in enumerate(document.layouts)
        if _layout(layout) is None
    ]
    listed = {layout.key for layout in document.layouts}
    named = {"details.nearest_miss": document.details.nearest_miss}
    named["winner"] = document.winner.key if document.winner is not None else None
    faults += [
        Fault(where=where, key=name, message=f"{key} is not among the layouts; {WAY_OUT}")
        for name, key in named.items()
        if key is not None and key not in listed
    ]
    if listed != set(document.details.layouts):
        faults.append(Fault(where=where, key="details.layouts", message=f"is not about the same layouts; {WAY_OUT}"))
    return faults


def _layout(document: PlacedLayoutDocument) -> Layout | None:
    try:
        layout = Layout.from_key(document.key)
    except ValueError:
        return None
    values = {name: axis.value for name, axis in document.layout.items()}
    same = {name: getattr(layout, name) for name in Layout.__dataclass_fields__} == values
    return layout if same else None


def _report(document: ReportDocument, results: Mapping[str, TrialResult]) -> Report:
    details = document.details
    layouts = {
        layout.key: _ranked(layout, details.layouts[layout.key], results.get(layout.key)) for layout in document.layouts
    }
    return Report(
        problem=details.problem,
        engine=details.engine,
        command=details.command,
        tool_version=document.tool_version,
        space=SpaceSummary(
            enumerated=document.space.enumerated,
            valid=document.space.valid,
            invalid=document.space.invalid,
            infeasible=document.space.infeasible,
        ),
        layouts=tuple(layouts.values()),
        winner=layouts[document.winner.key] if document.winner is not None else None,
        nearest_miss=layouts[details.nearest_miss] if details.nearest_miss is not None else None,
        limit_bytes=details.limit_bytes,
        run=document.run,
        warnings=tuple(details.warnings),
        notes=tuple(details.notes),
        calibration=details.calibration,
        stop_reason=details.stop_reason,
        elapsed_s=details.elapsed_s,
        versions=details.versions,
    )


def _ranked(document: PlacedLayoutDocument, details: LayoutDetails, result: TrialResult | None) -> RankedLayout:
    step, peak = document.step_time_s, document.peak_memory_bytes
    return RankedLayout(
        place=document.place,
        layout=Layout.from_key(document.key),
        origins={name: axis.origin for name, axis in document.layout.items()},
        predicted_s=step.predicted,
        low_s=step.low,
        high_s=step.high,
        measured_s=step.measured,
        memory_bytes=document.memory or {},
        time_s=document.time or {},
        peak_bytes=peak.predicted,
        upper_bytes=peak.upper,
        limit_bytes=peak.limit,
        measured_peak_bytes=peak.measured,
        fullest_stage=details.fullest_stage,
        oom_probability=document.oom_probability,
        verdict=document.verdict,
        reasons=tuple(
            Reason(code=reason.code, axes=tuple(reason.axes), message=reason.message) for reason in document.reasons
        ),
        basis=document.basis,
        result=result,
        baseline=details.baseline,
        tokens_per_s_per_gpu=details.tokens_per_s_per_gpu,
        mfu=details.mfu,
    )
