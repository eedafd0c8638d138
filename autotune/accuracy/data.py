"""The measured runs that ship with the package, and what is assumed of their blank cells."""

from functools import cache
from pathlib import Path
from typing import Final

from autotune.spec.load import read_yaml
from autotune.spec.measured import Assumptions
from autotune.spec.measured_row import COLUMNS, Assumed
from autotune.spec.reader import Reader

RUNS: Final = Path(__file__).parent / "runs"
ASSUMED: Final = RUNS / "assumed.yaml"
OTHER_CELLS: Final = ("memory_unit", "layers_per_chunk")
"""What an assumption may be about besides the columns of a file."""


def shipped_files() -> tuple[Path, ...]:
    """The CSVs of the package, by name."""
    return tuple(sorted(RUNS.glob("*.csv")))


@cache
def shipped_assumptions() -> Assumptions:
    """By source, then by column."""
    return read_assumptions(ASSUMED)


def read_assumptions(path: Path) -> Assumptions:
    """A file of {source: {column: {value, reason}}}. Raises InputError with all faults."""
    reader = Reader(read_yaml(path), where=path.name)
    found: dict[str, dict[str, Assumed]] = {}
    for source in reader.data:
        part = reader.part(source)
        part.allow((*COLUMNS, *OTHER_CELLS))
        found[source] = {}
        for column in part.data:
            cell = part.part(column)
            cell.allow(("value", "reason"))
            found[source][column] = Assumed(value=cell.text("value"), reason=cell.text("reason"))
    reader.finish()
    return found
