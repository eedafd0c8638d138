"""Reader: takes a mapping from a file apart, key by key, and collects every fault instead of stopping at the first."""

import difflib
from collections.abc import Iterable
from typing import TypeVar

from autotune.errors import Fault, InputError

LARGEST_WHOLE = 2**31 - 1
"""The largest size or count that is read: beyond it, products of sizes leave 64 bits."""

_Value = TypeVar("_Value", bool, int, str)

_WORDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "a mapping",
    type(None): "empty",
}


def kind_of(value: object) -> str:
    """The kind of a value as a sentence names it: "text", "a list", "true or false"."""
    return _WORDS.get(type(value), type(value).__name__)


def shown(value: object) -> str:
    """A value as a message quotes it: cut where it is long."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def too_large(value: int) -> str:
    """The sentence for a whole number that nothing real has."""
    return f"{shown(value)} is beyond {LARGEST_WHOLE}, the largest number that is read; give the real one"


def suggestion(wrong: str, known: Iterable[str]) -> str:
    """A question " (did you mean 'x'?)", or nothing where no known word is near."""
    near = difflib.get_close_matches(wrong, list(known), n=1)
    return f" (did you mean '{near[0]}'?)" if near else ""


class Reader:
    """One mapping of a file. After a fault a method returns a stand-in, so reading goes on; call `finish` before use.

    where: the file or option; key: the dotted key of this mapping in it; faults: shared with the readers of its parts.
    """

    def __init__(self, data: object, *, where: str, faults: list[Fault] | None = None, key: str = "") -> None:
        self.where = where
        self.key = key
        self.faults: list[Fault] = [] if faults is None else faults
        self.data: dict[str, object] = {}
        if isinstance(data, dict):
            self.data = {str(name): value for name, value in data.items()}
        else:
            self.fault("", f"is {kind_of(data)}, {shown(data)}; it must be a mapping of keys to values")

    def __contains__(self, name: str) -> bool:
        return self.data.get(name) is not None

    def fault(self, name: str, message: str) -> None:
        """Note a fault of one key of this mapping; "" for the mapping itself."""
        key = ".".join(part for part in (self.key, name) if part)
        self.faults.append(Fault(where=self.where, key=key, message=message))

    def finish(self) -> None:
        """Raise InputError with all faults so far."""
        if self.faults:
            raise InputError(self.faults)

    def allow(self, known: Iterable[str]) -> None:
        """A fault for every key that is not among the known ones."""
        names = list(known)
        for name in self.data:
            if name not in names:
                self.fault(name, f"is not a known key{suggestion(name, names)}; known here: {', '.join(names)}")

    def part(self, name: str) -> "Reader":
        """The mapping under a key."""
        key = ".".join(piece for piece in (self.key, name) if piece)
        if name not in self.data:
            self.missing(name)
            return Reader({}, where=self.where, faults=self.faults, key=key)
        return Reader(self.data[name], where=self.where, faults=self.faults, key=key)

    def text(self, name: str, default: str | None = None) -> str:
        """Text; required where there is no default."""
        value = self.data.get(name)
        if value is None:
            return self._absent(name, default, stand_in="")
        if not isinstance(value, str) or not value:
            self.fault(name, f"is {kind_of(value)}, {shown(value)}; it must be text")
            return default or ""
        return value

    def flag(self, name: str, default: bool | None = None) -> bool:
        """True or false; required where there is no default."""
        value = self.data.get(name)
        if value is None:
            return self._absent(name, default, stand_in=False)
        if not isinstance(value, bool):
            self.fault(name, f"is {kind_of(value)}, {shown(value)}; it must be true or false")
            return False
        return value

    def whole(self, name: str, default: int | None = None, *, minimum: int = 1) -> int:
        """A whole number of at least `minimum` (true is not 1); required where there is no default."""
        value = self.data.get(name)
        if value is None:
            return self._absent(name, default, stand_in=minimum)
        if isinstance(value, bool) or not isinstance(value, int):
            self.fault(name, f"is {kind_of(value)}, {shown(value)}; it must be a whole number")
            return minimum
        if value < minimum:
            wrong = "is not positive" if minimum == 1 else f"is below {minimum}"
            self.fault(name, f"{value} {wrong}; give a whole number of at least {minimum}")
            return minimum
        if value > LARGEST_WHOLE:
            self.fault(name, too_large(value))
            return minimum
        return value

    def choice(self, name: str, allowed: Iterable[str], default: str | None = None) -> str:
        """One of the allowed words; required where there is no default."""
        names = list(allowed)
        value = self.text(name, default)
        if value and value not in names:
            self.fault(name, f"'{value}' is not known{suggestion(value, names)}; known: {', '.join(names)}")
        return value

    def missing(self, name: str) -> None:
        """Note that a required key is not there, and a key in the file that may be its misspelling."""
        near = difflib.get_close_matches(name, list(self.data), n=1)
        hint = f"; the file has '{near[0]}', did you mean '{name}'?" if near else "; add it"
        self.fault(name, f"is missing{hint}")

    def _absent(self, name: str, default: _Value | None, *, stand_in: _Value) -> _Value:
        if default is not None:
            return default
        self.missing(name)
        return stand_in
