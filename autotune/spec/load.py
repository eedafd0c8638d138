"""The border: YAML and JSON files in, our frozen dataclasses to JSON and back; what is malformed is an InputError."""

import json
from collections.abc import Hashable, Iterable
from dataclasses import is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import yaml
from pydantic import TypeAdapter, ValidationError

from autotune.errors import Fault, InputError
from autotune.spec.outcome import Failed, Measured, TrialResult
from autotune.spec.reader import shown, suggestion
from autotune.units import MIB, format_bytes

try:
    from yaml import CSafeLoader as _Base
except ImportError:  # PyYAML built without libyaml: the same, slower
    from yaml import SafeLoader as _Base  # type: ignore[assignment]

JsonObject = dict[str, Any]
_Spec = TypeVar("_Spec")

MAX_FILE_BYTES = 2 * MIB
"""The largest real config.json is below 0.1 MiB; anything beyond this is not a file of ours."""

MAX_DEPTH = 50
"""Levels of nesting; ours have four."""


def names_a_file(text: str) -> bool:
    """Whether a text is meant as a path and not as a name: it has a folder or a known ending, or is there."""
    path = Path(text)
    return len(path.parts) > 1 or path.suffix in {".yaml", ".yml", ".json"} or is_there(path)


def is_there(path: Path) -> bool:
    """Whether a file or folder of that name exists; a name that no file can have is not there."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def read_text(path: Path) -> str:
    """The text of a file. Raises InputError where it is missing, a directory, unreadable, too large or not UTF-8."""
    where = str(path)
    try:
        if path.is_dir():
            raise InputError.one("is a directory; give a file in it", where=where)
        size_bytes = path.stat().st_size
        if size_bytes > MAX_FILE_BYTES:
            message = f"has {format_bytes(size_bytes)}, the limit is {format_bytes(MAX_FILE_BYTES)}; give another file"
            raise InputError.one(message, where=where)
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise InputError.one("does not exist; check the path", where=where) from error
    except UnicodeDecodeError as error:
        raise InputError.one(f"is not UTF-8 text (byte {error.start}); give a text file", where=where) from error
    except (OSError, ValueError) as error:
        raise InputError.one(f"cannot be read: {error}; check the path and its permissions", where=where) from error


def read_file(path: Path) -> object:
    """The data of a .json file, else of a YAML file. Raises InputError."""
    return read_json(path) if path.suffix == ".json" else read_yaml(path)


def read_json(path: Path) -> object:
    """The data of a JSON file. Raises InputError with the line where the text stops making sense."""
    text = read_text(path)
    where = str(path)
    try:
        return json.loads(text, object_pairs_hook=_no_duplicates)
    except json.JSONDecodeError as error:
        torn = " the file may be cut off;" if error.pos >= len(text.rstrip()) else ""
        message = f"is not JSON: {error.msg} in line {error.lineno}, column {error.colno};{torn} correct that line"
        raise InputError.one(message, where=where) from error
    except RecursionError as error:
        raise InputError.one("is nested too deeply to be read; flatten it", where=where) from error
    except ValueError as error:
        raise InputError.one(f"is not usable JSON: {error}", where=where) from error


def read_yaml(path: Path) -> object:
    """The data of a YAML file: no anchor or alias, no key twice, dates stay text. Raises InputError with the line."""
    text = read_text(path)
    where = str(path)
    try:
        _refuse_growth(text)
        return yaml.load(text, Loader=_PlainLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f" in line {mark.line + 1}" if mark is not None else ""
        message = f"is not usable YAML: {error.problem or error.context}{line}; correct that line"
        raise InputError.one(message, where=where) from error
    except (yaml.YAMLError, ValueError) as error:
        raise InputError.one(f"is not usable YAML: {error}", where=where) from error


def to_json(value: object) -> JsonObject:
    """A frozen dataclass as plain JSON data. A float that is not finite (a diverged loss) stays one."""
    if not is_dataclass(value) or isinstance(value, type):
        message = f"{type(value).__name__} is not a dataclass instance"
        raise TypeError(message)
    return cast(JsonObject, _adapter(type(value)).dump_python(value, mode="json"))


def from_json(kind: type[_Spec], data: object, *, where: str = "") -> _Spec:
    """The inverse of `to_json`: exact types, no unknown key. Raises InputError with all faults."""
    where = where or kind.__name__
    adapter = _adapter(cast(Hashable, kind))
    try:
        value = cast(_Spec, adapter.validate_json(json.dumps(data), strict=True))
    except ValidationError as error:
        raise InputError(_fault(where, details) for details in error.errors(include_url=False)) from error
    except (TypeError, ValueError) as error:
        raise InputError.one(f"is not JSON data: {error}", where=where) from error
    faults = list(_unknown_keys(data, adapter.dump_python(value, mode="json"), where=where, key=""))
    if faults:
        raise InputError(faults)
    return value


def trial_result_from_json(data: object, *, where: str = "") -> TrialResult:
    """Measured or Failed: only a failed trial has a status. Raises InputError with all faults."""
    if isinstance(data, dict) and "status" in data:
        return from_json(Failed, data, where=where)
    return from_json(Measured, data, where=where)


@cache
def _adapter(kind: Hashable) -> TypeAdapter[Any]:
    return TypeAdapter(cast(Any, kind))


def _fault(where: str, details: Any) -> Fault:
    key = ".".join(str(part) for part in details["loc"])
    if details["type"] == "missing":
        return Fault(where=where, key=key, message="is missing; add it")
    message = details["msg"][0].lower() + details["msg"][1:]
    return Fault(where=where, key=key, message=f"{shown(details['input'])} is wrong: {message}")


def _unknown_keys(given: object, understood: object, *, where: str, key: str) -> list[Fault]:
    """Keys of the given data that did not survive the reading."""
    if isinstance(given, list) and isinstance(understood, list):
        pairs = [(str(index), one, other) for index, (one, other) in enumerate(zip(given, understood, strict=True))]
    elif isinstance(given, dict) and isinstance(understood, dict):
        pairs = [(str(name), value, understood.get(name)) for name, value in given.items()]
    else:
        return []
    faults: list[Fault] = []
    for name, one, other in pairs:
        dotted = f"{key}.{name}" if key else name
        if isinstance(understood, dict) and name not in understood:
            message = f"is not a known key{suggestion(name, understood)}; known here: {', '.join(understood)}"
            faults.append(Fault(where=where, key=dotted, message=message))
        else:
            faults.extend(_unknown_keys(one, other, where=where, key=dotted))
    return faults


def _no_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    data = dict(pairs)
    if len(data) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        message = f"the key '{twice}' is given twice in one mapping; keep one"
        raise ValueError(message)
    return data


def _refuse_growth(text: str) -> None:
    """Refuse anchors and aliases, by which a small file grows without bound, and a depth that no file of ours has."""
    depth = 0
    events: Iterable[Any] = yaml.parse(text, Loader=_Base)
    for event in events:
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise yaml.MarkedYAMLError(
                problem="anchors and aliases (& and *) are not accepted", problem_mark=event.start_mark
            )
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            problem = f"it is nested more than {MAX_DEPTH} levels deep"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)


class _PlainLoader(_Base):
    """A safe loader without double keys and dates: every value is what it says."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - the shape that PyYAML prescribes
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        seen: set[str] = set()
        for key_node, _ in node.value:
            if isinstance(key_node, yaml.ScalarNode) and key_node.value in seen:
                problem = f"the key '{key_node.value}' is given twice"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key_node.start_mark)
            seen.add(str(key_node.value))
        return super().construct_mapping(node, deep=deep)
