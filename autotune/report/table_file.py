"""table.npz: every scored layout of a run, one array a column, in NumPy's own uncompressed format.

The axes are arrays of codes by their names; `<axis>_choices` names the codes of a text axis and `verdict_choices` those
of `verdict`. `ranking_s` is the step time that ranks, infinite where a layout has no place. The parts of the totals are
not kept: the cost model gives them again from the run's inputs in a fraction of a second.
"""

import os
import secrets
import zipfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from autotune.cost.feasibility import VERDICTS, VerdictColumn
from autotune.errors import EnvironmentFaultError, Fault, InputError
from autotune.report.scored import ScoredTable
from autotune.spec.axes import AXES, Axis
from autotune.spec.layout import BoolColumn, FloatColumn, IntColumn, LayoutTable

SCHEMA_VERSION: Final = 1
_TOTALS: Final = ("step_time_s", "peak_bytes", "upper_bytes", "ranking_s")
_UNREADABLE: Final = (OSError, ValueError, EOFError, RuntimeError, MemoryError, zipfile.BadZipFile)
"""What NumPy and zipfile raise for a file that is cut off or has wrong bytes in it."""

_WAY_OUT: Final = "run the same `autotune tune` again to write it anew"


@dataclass(frozen=True, kw_only=True)
class TableFile:
    """What a table.npz holds; columns of one length. verdicts: codes into `feasibility.VERDICTS`."""

    table: LayoutTable
    step_time_s: FloatColumn
    peak_bytes: FloatColumn
    upper_bytes: FloatColumn
    ranking_s: FloatColumn
    verdicts: VerdictColumn


def write_table(path: Path, scored: ScoredTable, ranking_s: FloatColumn) -> None:
    """Write the whole file or leave what was there. Raises EnvironmentFaultError if it cannot be written.

    Not flushed to the disk, which may take longer than the search: the same command writes it again.
    """
    columns: dict[str, NDArray[Any]] = {"schema_version": np.array(SCHEMA_VERSION)}
    for axis in AXES:
        columns[axis.name] = _smallest(getattr(scored.table, axis.name))
        if _is_text(axis):
            columns[_choices_name(axis)] = np.array(axis.choices)
    columns |= {
        "step_time_s": scored.step_s,
        "peak_bytes": scored.peak_bytes,
        "upper_bytes": scored.upper_bytes,
        "ranking_s": ranking_s,
        "verdict": scored.verdicts,
        "verdict_choices": np.array([verdict.value for verdict in VERDICTS]),
    }
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")  # see paths.is_temporary
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("xb") as file:
                np.savez(file, **columns)  # type: ignore[arg-type]  # numpy 1 and 2 differ in its keywords
            temporary.replace(path)
        finally:
            with suppress(OSError):
                temporary.unlink()
    except OSError as error:
        msg = f"{path}: the table cannot be written ({error.strerror}); free some space or give another --out"
        raise EnvironmentFaultError(msg) from error


def read_table(path: Path) -> TableFile:
    """Read a table.npz. Raises InputError with all faults; nothing in the file is executed."""
    arrays = _read_arrays(path)
    where = str(path)
    version = arrays.get("schema_version")
    if version is None or version.shape != () or version != SCHEMA_VERSION:
        found = "no schema_version" if version is None else f"schema_version {version}"
        raise InputError.one(f"has {found}, this autotune reads {SCHEMA_VERSION}; {_WAY_OUT}", where=where)

    columns: dict[str, NDArray[Any]] = {}
    faults: list[Fault] = []
    readers = {axis.name: axis.choices if _is_text(axis) else () for axis in AXES}
    readers |= {"verdict": tuple(verdict.value for verdict in VERDICTS), **dict.fromkeys(_TOTALS, ())}
    for name, choices in readers.items():
        try:
            columns[name] = _codes(arrays, name, choices) if choices else _column(arrays, name, kinds="biuf")
        except ValueError as error:
            faults.append(Fault(where=where, key=name, message=f"{error}; {_WAY_OUT}"))
    lengths = {name: len(column) for name, column in columns.items()}
    if not faults and len(set(lengths.values())) != 1:
        faults.append(Fault(where=where, message=f"has columns of different lengths, {lengths}; {_WAY_OUT}"))
    if faults:
        raise InputError(faults)
    return TableFile(
        table=LayoutTable.from_columns({axis.name: columns[axis.name] for axis in AXES}),
        verdicts=columns["verdict"].astype(np.int8),
        **{name: columns[name].astype(np.float64) for name in _TOTALS},
    )


def _read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    where = str(path)
    try:
        with path.open("rb") as stream:
            loaded = np.load(stream, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                raise InputError.one(f"is a single array, not a table of layouts; {_WAY_OUT}", where=where)
            return {name: loaded[name] for name in loaded.files}
    except FileNotFoundError as error:
        raise InputError.one(f"does not exist; {_WAY_OUT}", where=where) from error
    except _UNREADABLE as error:
        raise InputError.one(f"is not a table of layouts ({error}); {_WAY_OUT}", where=where) from error


def _column(arrays: dict[str, NDArray[Any]], name: str, *, kinds: str) -> NDArray[Any]:
    """A column whose kind of number is one of NumPy's letters. Raises ValueError with a sentence."""
    column = arrays.get(name)
    if column is None:
        msg = "is missing"
        raise ValueError(msg)
    if column.ndim != 1 or column.dtype.kind not in kinds:
        msg = f"is an array of {column.dtype} with the shape {column.shape}, not a column of its kind"
        raise ValueError(msg)
    return column


def _codes(arrays: dict[str, NDArray[Any]], name: str, choices: tuple[object, ...]) -> IntColumn:
    """Stored codes as codes into `choices`, which may stand in another order here. Raises ValueError."""
    codes = _column(arrays, name, kinds="iu")
    stored = [str(choice) for choice in _column(arrays, f"{name}_choices", kinds="U")]
    unknown = [choice for choice in stored if choice not in choices]
    if len(codes) and not 0 <= int(codes.min()) <= int(codes.max()) < len(stored):
        msg = f"has codes from {codes.min()} to {codes.max()} for {len(stored)} choices"
        raise ValueError(msg)
    here = np.array([choices.index(choice) if choice in choices else -1 for choice in stored], dtype=np.int64)
    recoded: IntColumn = here[codes]
    if (recoded < 0).any():
        msg = f"uses {', '.join(unknown)}, which this autotune does not know"
        raise ValueError(msg)
    return recoded


def _smallest(column: IntColumn | BoolColumn) -> NDArray[Any]:
    """The column in the smallest type that holds it."""
    if column.dtype == np.bool_:
        return column
    return column.astype(np.min_scalar_type(int(column.max(initial=0))))


def _is_text(axis: Axis) -> bool:
    return isinstance(axis.off, str)


def _choices_name(axis: Axis) -> str:
    return f"{axis.name}_choices"
