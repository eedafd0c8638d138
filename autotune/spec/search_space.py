"""SearchSpace: which values of which axes are searched. Read from `search_spaces/*.yaml` and pinned by options.

A file holds `intent` (what the space is for) and `axes`, a mapping from axis to one of

    tp: any                 every value that can be legal
    tp: {max: 64}           every one up to 64
    tp: [1, 2, 4]           these
    zero_stage: 1           this one

An axis that the file does not name is off.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import cast

from autotune.errors import InputError
from autotune.spec.axes import AXIS_BY_NAME, AXIS_NAMES, Axis, AxisKind, AxisValue
from autotune.spec.axis_text import axis_fault, parse_axis_values, unknown_axis
from autotune.spec.load import names_a_file, read_file
from autotune.spec.reader import Reader, shown, suggestion

__all__ = ["AxisChoice", "SearchSpace", "load_space", "parse_axis_values", "space_names"]

ANY = "any"


@dataclass(frozen=True, kw_only=True, slots=True)
class AxisChoice:
    """values: those to search, None for every one that can be legal; maximum: the largest, None for no bound."""

    values: tuple[AxisValue, ...] | None = None
    maximum: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchSpace:
    """The searched axes with their choices; an axis that is not among them is off. intent: what the space is for."""

    name: str = ""
    intent: str = ""
    axes: dict[str, AxisChoice]

    def with_axis(self, name: str, values: Iterable[AxisValue]) -> "SearchSpace":
        """The same space with one axis pinned to the given values. Raises KeyError for what is no axis."""
        axis = AXIS_BY_NAME[name]
        return replace(self, axes={**self.axes, axis.name: AxisChoice(values=tuple(values))})


def load_space(name_or_path: str) -> SearchSpace:
    """A ready space by name, or one from a YAML file. Raises InputError with all faults."""
    names = space_names()
    if name_or_path in names:
        path = _folder() / f"{name_or_path}.yaml"
        return _read_space(path, name=name_or_path, where=f"search_spaces/{path.name}")
    if names_a_file(name_or_path):
        path = Path(name_or_path)
        return _read_space(path, name=path.stem, where=name_or_path)
    message = f"'{name_or_path}' is not a ready space{suggestion(name_or_path, names)}; there are {', '.join(names)}"
    raise InputError.one(f"{message}, or give a YAML file", where="--space")


def space_names() -> tuple[str, ...]:
    """The ready spaces."""
    return tuple(sorted(path.stem for path in _folder().glob("*.yaml")))


def _folder() -> Path:
    """`search_spaces` in the installed package, else beside it in the repository."""
    package = Path(str(files("autotune")))
    inside = package / "search_spaces"
    return inside if inside.is_dir() else package.parent / "search_spaces"


def _read_space(path: Path, *, name: str, where: str) -> SearchSpace:
    reader = Reader(read_file(path), where=where)
    reader.allow(("intent", "axes"))
    intent = reader.text("intent", "")
    axes = reader.part("axes")
    choices: dict[str, AxisChoice] = {}
    for axis_name, value in axes.data.items():
        if axis_name in AXIS_NAMES:
            choices[axis_name] = _read_choice(AXIS_BY_NAME[axis_name], value, axes)
        else:
            axes.fault(axis_name, unknown_axis(axis_name))
    reader.finish()
    return SearchSpace(name=name, intent=" ".join(intent.split()), axes=choices)


def _read_choice(axis: Axis, value: object, axes: Reader) -> AxisChoice:
    if value == ANY:
        return AxisChoice()
    if isinstance(value, dict):
        return _read_maximum(axis, axes.part(axis.name), axes)
    values = value if isinstance(value, list) else [value]
    if not values:
        axes.fault(axis.name, f"is an empty list; list values, or write '{ANY}', or leave the axis out")
    messages = [axis_fault(axis, one) for one in values]
    for message in messages:
        if message is not None:
            axes.fault(axis.name, message)
    if any(messages):
        return AxisChoice()
    return AxisChoice(values=tuple(dict.fromkeys(cast(list[AxisValue], values))))


def _read_maximum(axis: Axis, bounds: Reader, axes: Reader) -> AxisChoice:
    bounds.allow(("max",))
    if axis.kind is not AxisKind.DEGREE:
        axes.fault(axis.name, f"{shown(bounds.data)} bounds an axis that has no order; list its values")
        return AxisChoice()
    return AxisChoice(maximum=bounds.whole("max"))
