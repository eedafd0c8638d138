"""Values of an axis as people write them, on the command line and in files: checked against AXES, once for all."""

from autotune.errors import Fault, InputError
from autotune.spec.axes import AXIS_BY_NAME, AXIS_NAMES, Axis, AxisKind, AxisValue
from autotune.spec.reader import LARGEST_WHOLE, kind_of, shown, suggestion, too_large

_FLAGS = {"true": True, "false": False, "on": True, "off": False}


def flag_of(axis_name: str) -> str:
    """The command-line option of an axis: "--dp-shard"."""
    return "--" + axis_name.replace("_", "-")


def axis_fault(axis: Axis, value: object) -> str | None:
    """What is wrong with a value of the axis, as a sentence; None if it can be one."""
    match axis.kind:
        case AxisKind.FLAG:
            if not isinstance(value, bool):
                return f"is {kind_of(value)}, {shown(value)}; it must be true or false"
        case AxisKind.CHOICE:
            if isinstance(value, bool) or value not in axis.choices:
                known = ", ".join(str(choice) for choice in axis.choices)
                return f"{shown(value)} is not known{suggestion(str(value), map(str, axis.choices))}; known: {known}"
        case AxisKind.DEGREE:
            if isinstance(value, bool) or not isinstance(value, int):
                return f"is {kind_of(value)}, {shown(value)}; it must be a whole number"
            if value < 1:
                return f"{value} is not positive; give a whole number of at least 1"
            if value > LARGEST_WHOLE:
                return too_large(value)
    return None


def parse_axis_value(axis_name: str, text: str, *, where: str = "") -> AxisValue:
    """One value of an axis from its text. Raises InputError, by default with the axis' option as the place."""
    return parse_axis_values(axis_name, text, where=where, single=True)[0]


def parse_axis_values(
    axis_name: str, text: str, *, where: str = "", single: bool = False
) -> tuple[AxisValue, ...]:  # fmt: skip
    """The values of an axis from "4,8", each once, in their order. Raises InputError with every wrong one."""
    axis = AXIS_BY_NAME[axis_name]
    where = where or flag_of(axis_name)
    words = [text.strip()] if single else [word.strip() for word in text.split(",")]
    values = [_value_of(axis, word) for word in words]
    messages = [axis_fault(axis, value) for value in values]
    faults = [Fault(where=where, message=message) for message in messages if message is not None]
    if faults:
        raise InputError(faults)
    return tuple(dict.fromkeys(values))


def unknown_axis(name: str) -> str:
    """The sentence for a name that is no axis."""
    return f"is not an axis{suggestion(name, AXIS_NAMES)}; the axes are {', '.join(AXIS_NAMES)}"


def _value_of(axis: Axis, word: str) -> AxisValue:
    """The word as the axis' type if it can be one, else as it is, for `axis_fault` to refuse."""
    if axis.kind is AxisKind.FLAG:
        return _FLAGS.get(word.lower(), word)
    if isinstance(axis.off, str):
        return word
    digits = word.removeprefix("-")
    return int(word) if digits.isascii() and digits.isdigit() and len(digits) < 19 else word
