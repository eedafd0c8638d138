"""draw_schedule(): a pipeline schedule by name, replayed with even stages; and its pictures and trace as files."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from autotune.cost.pipeline.costs import StageCosts, even_costs
from autotune.cost.pipeline.operations import Schedule
from autotune.cost.pipeline.registry import build
from autotune.cost.pipeline.replay import replay
from autotune.cost.pipeline.timeline import Timeline
from autotune.engines.registry import ENGINES
from autotune.errors import Fault, InputError
from autotune.report.timeline_picture import picture
from autotune.report.timeline_trace import chrome_trace
from autotune.trials.paths import write_atomically

TIME_UNIT: Final = "forward passes of a micro-batch on one rank"
MEMORY_UNIT: Final = "micro-batches' activations of one rank"


@dataclass(frozen=True, kw_only=True, slots=True)
class ScheduleRequest:
    """What was typed.

    vpp: chunks on each rank, None for the fewest that the schedule has; backward_ratio: backward in forward passes;
    weight_gradient_ratio: the weight gradient's part of it, None for half; parts: slices of a sequence; waves:
    Hanayo's; recomputed_chunks: the shallowest; transfer: from rank to rank, in forward passes.
    """

    name: str
    pp: int
    micro_batches: int
    vpp: int | None = None
    backward_ratio: float = 2.0
    weight_gradient_ratio: float | None = None
    parts: int | None = None
    waves: int | None = None
    recomputed_chunks: int = 0
    transfer: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class ScheduleAnswer:
    """The replayed schedule, its seconds being TIME_UNITs and its bytes MEMORY_UNITs. engines: those that run it."""

    timeline: Timeline
    engines: tuple[str, ...]


def draw_schedule(request: ScheduleRequest) -> ScheduleAnswer:
    """Build a schedule and replay it. Raises InputError with all faults."""
    faults = _cost_faults(request)
    schedule: Schedule | None = None
    try:
        schedule = build(
            request.name,
            pp=request.pp,
            micro_batches=request.micro_batches,
            vpp=request.vpp,
            parts=request.parts,
            waves=request.waves,
            recomputed_chunks=request.recomputed_chunks,
        )
    except InputError as error:
        faults += error.faults
    if schedule is None or faults:
        raise InputError(faults)
    engines = tuple(name for name, engine in ENGINES.items() if request.name in engine.schedules)
    return ScheduleAnswer(timeline=replay(schedule, _costs(request, schedule)), engines=engines)


def write_schedule_files(
    answer: ScheduleAnswer, *, png: Path | None = None, svg: Path | None = None, trace: Path | None = None
) -> tuple[Path, ...]:
    """Write the files that are asked for, each by rename; which were written."""
    written = []
    for path, image_format in ((png, "png"), (svg, "svg")):
        if path is not None:
            content = picture(
                answer.timeline,
                image_format="svg" if image_format == "svg" else "png",
                time_unit=TIME_UNIT,
                memory_unit=MEMORY_UNIT,
            )
            write_atomically(path, content)
            written.append(path)
    if trace is not None:
        write_atomically(trace, chrome_trace(answer.timeline))
        written.append(trace)
    return tuple(written)


def _costs(request: ScheduleRequest, schedule: Schedule) -> StageCosts:
    """A rank's forward takes 1 and keeps 1, shared evenly by its chunks."""
    weight_gradient = _weight_gradient(request)
    return even_costs(
        schedule.stages,
        forward_s=1 / schedule.vpp,
        input_gradient_s=(request.backward_ratio - weight_gradient) / schedule.vpp,
        weight_gradient_s=weight_gradient / schedule.vpp,
        activation_bytes=1 / schedule.vpp,
        transfer_s=request.transfer,
    )


def _weight_gradient(request: ScheduleRequest) -> float:
    if request.weight_gradient_ratio is None:
        return request.backward_ratio / 2
    return request.weight_gradient_ratio


def _cost_faults(request: ScheduleRequest) -> list[Fault]:
    found = []
    ratio, weight_gradient = request.backward_ratio, _weight_gradient(request)
    if ratio <= 0:
        found.append(Fault(where="--backward-ratio", message=f"{ratio:g}, a backward takes more than 0 forward passes"))
    elif not 0 < weight_gradient < ratio:
        found.append(
            Fault(
                where="--weight-gradient-ratio",
                message=f"{weight_gradient:g}, a part of the backward is between 0 and --backward-ratio {ratio:g}",
            )
        )
    if request.transfer < 0:
        found.append(Fault(where="--transfer", message=f"{request.transfer:g}, a transfer takes at least 0"))
    return found
