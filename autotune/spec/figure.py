"""Figure: an empirical number together with where it comes from. There is no number without a source."""

from dataclasses import dataclass
from enum import StrEnum


class Basis(StrEnum):
    """How a number came to be, from best to worst."""

    MEASURED = "measured"
    FITTED = "fitted"
    INTERPOLATED = "interpolated"
    DATASHEET = "datasheet"


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """value in the SI base unit that the field's name ends in; source: datasheet, paper or measured rows; date: ISO."""

    value: float
    basis: Basis
    source: str
    date: str
