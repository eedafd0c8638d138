"""From what the user typed to a Problem and an Engine: names are looked up, files read, all faults reported at once."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args

from autotune.cost.feasibility import limit_bytes
from autotune.engines.protocol import Engine
from autotune.engines.registry import ENGINES
from autotune.errors import Fault, InputError
from autotune.progress import Observer, SilentObserver, StageFinished, StageStarted
from autotune.spec.cluster import ClusterSpec
from autotune.spec.cluster_file import load_cluster
from autotune.spec.huggingface import load_model
from autotune.spec.local import LOCAL, local_cluster
from autotune.spec.probe import MachineProbe
from autotune.spec.reader import suggestion
from autotune.spec.scale_down import scale_down
from autotune.spec.workload import Attention, GradientDtype, Optimizer, Precision, Problem, WorkloadSpec
from autotune.trials.probe import probe_machine
from autotune.units import parse_bytes

_Value = TypeVar("_Value")


@dataclass(frozen=True, kw_only=True, slots=True)
class Host:
    """What the workflow may know of the machine it runs on; handed in, never read from the environment.

    python: the interpreter that runs workers; environment: theirs; results: where run folders go; cores: of this
    machine.
    """

    python: Path
    environment: Mapping[str, str]
    results: Path
    cores: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ProblemRequest:
    """What was typed. sequence_length in tokens, global_batch_size in sequences, memory_limit as "70 GiB"."""

    model: str
    cluster: str
    sequence_length: int
    global_batch_size: int
    engine: str = "torch"
    precision: str = "bf16"
    optimizer: str = "adamw"
    gradient_dtype: str = "fp32"
    attention: str = "flash"
    memory_limit: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Resolved:
    """The question, understood. machine: this machine's probe where the cluster is local."""

    problem: Problem
    engine: Engine
    limit_bytes: float
    machine: MachineProbe | None = None


def resolve(
    request: ProblemRequest, host: Host, *, scale_to_local: bool = False, observer: Observer | None = None
) -> Resolved:
    """Look up and read everything the request names.

    Raises InputError with all faults; EnvironmentFaultError where "local" is asked and no torch is there to measure it.
    """
    faults: list[Fault] = []
    model = attempt(faults, lambda: load_model(request.model))
    cluster = attempt(faults, lambda: _named_cluster(request.cluster))
    workload = attempt(faults, lambda: workload_of(request))
    engine = attempt(faults, lambda: engine_named(request.engine))
    limit = attempt(faults, lambda: memory_limit_of(request.memory_limit))
    if faults or model is None or workload is None or engine is None:
        raise InputError(faults)

    machine = None
    if cluster is None or scale_to_local:
        machine = measure_machine(host, gpus=_local_gpus(request.cluster), observer=observer)
        cluster = local_cluster(machine)
    problem = Problem(model=model, cluster=cluster, workload=workload)
    if scale_to_local:
        problem = scale_down(problem)
    return Resolved(
        problem=problem, engine=engine, limit_bytes=limit_bytes(problem.cluster, limit), machine=machine
    )  # fmt: skip


def measure_machine(host: Host, *, gpus: int | None = None, observer: Observer | None = None) -> MachineProbe:
    """What this machine is and how fast, in seconds. Raises EnvironmentFaultError without torch."""
    told = observer or SilentObserver()
    told.notify(StageStarted(name="measuring this machine"))
    machine = probe_machine(host.python, gpus=gpus, folder=host.results)
    told.notify(StageFinished())
    return machine


def engine_named(name: str) -> Engine:
    """The engine of that name. Raises InputError with the nearest one."""
    if name in ENGINES:
        return ENGINES[name]
    raise InputError.one(_unknown(name, ENGINES), where="--engine")


def workload_of(request: ProblemRequest) -> WorkloadSpec:
    """The workload part of a request. Raises InputError with every fault in it."""
    choices: dict[str, tuple[str, ...]] = {
        "precision": get_args(Precision),
        "optimizer": get_args(Optimizer),
        "gradient_dtype": get_args(GradientDtype),
        "attention": get_args(Attention),
    }
    faults = [
        Fault(where="--" + name.replace("_", "-"), message=_unknown(getattr(request, name), allowed))
        for name, allowed in choices.items()
        if getattr(request, name) not in allowed
    ]
    for flag, size in (("--seq-len", request.sequence_length), ("--global-batch-size", request.global_batch_size)):
        if size < 1:
            faults.append(Fault(where=flag, message=f"{size} is not positive; give a whole number of at least 1"))
    if faults:
        raise InputError(faults)
    chosen: dict[str, Any] = {name: getattr(request, name) for name in choices}
    return WorkloadSpec(
        sequence_length=request.sequence_length, global_batch_size=request.global_batch_size, **chosen
    )  # fmt: skip


def memory_limit_of(text: str | None) -> float | None:
    """Bytes of a --memory-limit. Raises InputError."""
    if text is None:
        return None
    try:
        size_bytes = parse_bytes(text)
    except ValueError as error:
        raise InputError.one(str(error), where="--memory-limit") from error
    if size_bytes < 1:
        raise InputError.one(f"'{text}' is not positive; give a size such as 70 GiB", where="--memory-limit")
    return float(size_bytes)


def _named_cluster(name: str) -> ClusterSpec | None:
    """The cluster, or None for this machine."""
    if name == LOCAL or name.startswith(f"{LOCAL}:"):
        _local_gpus(name)
        return None
    return load_cluster(name)


def _local_gpus(name: str) -> int | None:
    """The 4 of "local:4"; None lets the machine decide."""
    if not name.startswith(f"{LOCAL}:"):
        return None
    text = name.removeprefix(f"{LOCAL}:")
    if not text.isdecimal() or not 1 <= int(text) <= 64:
        raise InputError.one(f"'{name}' is not local or local:N with N from 1 to 64 processes", where="--cluster")
    return int(text)


def attempt(faults: list[Fault], read: Callable[[], _Value]) -> _Value | None:
    """What `read` returns; None if it raises InputError, whose faults are then added."""
    try:
        return read()
    except InputError as error:
        faults.extend(error.faults)
        return None


def _unknown(value: str, known: Iterable[str]) -> str:
    return f"'{value}' is not known{suggestion(value, known)}; known: {', '.join(known)}"
