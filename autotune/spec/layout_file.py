"""A layout that somebody wrote down: a YAML file of axes and values, or a layout key. Only what is given comes back."""

from pathlib import Path

from autotune.errors import InputError
from autotune.spec.axes import AXES, AXIS_BY_NAME, AxisValue
from autotune.spec.axis_text import axis_fault, unknown_axis
from autotune.spec.layout import Layout
from autotune.spec.load import names_a_file, read_file
from autotune.spec.reader import Reader


def read_layout(text: str) -> dict[str, AxisValue]:
    """The axes that a layout file gives, or all axes of a layout key, which leaves out only what is off.

    Raises InputError with all faults.
    """
    if text and names_a_file(text):
        return read_layout_file(Path(text))
    if not text:
        raise InputError.one("is empty; give a layout file or a key such as tp8-pp2-shard32-z1-mbs1", where="layout")
    try:
        layout = Layout.from_key(text)
    except ValueError as error:
        message = f"{error}; a key looks like tp8-pp2-shard32-z1-mbs1; a file ends in .yaml"
        raise InputError.one(message, where="layout") from error
    values: dict[str, AxisValue] = {axis.name: getattr(layout, axis.name) for axis in AXES}
    for name, value in values.items():
        fault = axis_fault(AXIS_BY_NAME[name], value)
        if fault is not None:
            raise InputError.one(fault, where=f"layout {text}", key=name)
    return values


def read_layout_file(path: Path) -> dict[str, AxisValue]:
    """The axes that a file gives: a mapping from axis to value. Raises InputError with all faults."""
    reader = Reader(read_file(path), where=str(path))
    given: dict[str, AxisValue] = {}
    for name, value in reader.data.items():
        axis = AXIS_BY_NAME.get(name)
        fault = unknown_axis(name) if axis is None else axis_fault(axis, value)
        if fault is not None:
            reader.fault(name, fault)
        elif isinstance(value, bool | int | str):
            given[name] = value
    if not reader.data:
        reader.fault("", "gives no axis; write for example 'tp: 8'")
    reader.finish()
    return given
