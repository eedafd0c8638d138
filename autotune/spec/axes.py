"""AXES: the one table of axes. Flags, file keys, Optuna distributions and report columns derive from it.

To add an axis, add a line here and a field to `Layout`; failing tests then name each rule, cost term, exporter and
glossary line that is missing.
"""

from dataclasses import dataclass
from enum import StrEnum

from autotune.spec.schedules import SCHEDULES

AxisValue = int | bool | str


class AxisKind(StrEnum):
    """How an axis takes its values."""

    DEGREE = "degree"  # a positive whole number that counts GPUs or chunks
    CHOICE = "choice"  # one of `choices`; a table stores the index
    FLAG = "flag"  # false or true


@dataclass(frozen=True, kw_only=True, slots=True)
class Axis:
    """One dimension of a layout.

    off: the value that means "not used"; choices: the fixed universal list of a CHOICE axis; prefix: how a layout key
    writes the axis ("tp8"); an axis that is off is left out of the key.
    """

    name: str
    kind: AxisKind
    off: AxisValue
    prefix: str
    help: str
    choices: tuple[AxisValue, ...] = ()


AXES: tuple[Axis, ...] = (
    Axis(name="tp", kind=AxisKind.DEGREE, off=1, prefix="tp", help="tensor parallel degree"),
    Axis(name="pp", kind=AxisKind.DEGREE, off=1, prefix="pp", help="pipeline parallel degree"),
    Axis(name="vpp", kind=AxisKind.DEGREE, off=1, prefix="vpp", help="model chunks per pipeline rank"),
    Axis(name="dp_replicate", kind=AxisKind.DEGREE, off=1, prefix="rep", help="data-parallel ranks that hold copies"),
    Axis(
        name="dp_shard", kind=AxisKind.DEGREE, off=1, prefix="shard",
        help="data-parallel ranks over which zero_stage shards",
    ),
    Axis(name="cp", kind=AxisKind.DEGREE, off=1, prefix="cp", help="context parallel degree"),
    Axis(name="ep", kind=AxisKind.DEGREE, off=1, prefix="ep", help="expert parallel degree"),
    Axis(name="etp", kind=AxisKind.DEGREE, off=1, prefix="etp", help="tensor parallel degree inside an expert"),
    Axis(
        name="zero_stage", kind=AxisKind.CHOICE, off=0, prefix="z", choices=(0, 1, 2, 3),
        help="what dp_shard shards: 0 nothing, 1 optimizer, 2 and gradients, 3 and weights",
    ),
    Axis(name="sequence_parallel", kind=AxisKind.FLAG, off=False, prefix="sp", help="Megatron's sequence parallelism"),
    Axis(name="micro_batch_size", kind=AxisKind.DEGREE, off=1, prefix="mbs", help="sequences a micro-batch"),
    Axis(
        name="schedule", kind=AxisKind.CHOICE, off="1f1b", prefix="", choices=tuple(SCHEDULES),
        help="pipeline schedule",
    ),
    Axis(
        name="recompute", kind=AxisKind.CHOICE, off="none", prefix="recompute-", choices=("none", "selective", "full"),
        help="activations computed again in the backward pass",
    ),
)  # fmt: skip

AXIS_BY_NAME: dict[str, Axis] = {axis.name: axis for axis in AXES}
AXIS_NAMES: tuple[str, ...] = tuple(AXIS_BY_NAME)
