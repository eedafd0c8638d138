"""Figures in files: "450 GB/s", or {value, basis, source, date}; never without a unit, a source and a date."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from autotune.spec.figure import Basis, Figure
from autotune.spec.reader import Reader, kind_of, shown
from autotune.units import parse_bytes, parse_bytes_per_s, parse_flops_per_s, parse_seconds

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_FIELDS = ("value", "basis", "source", "date")


@dataclass(frozen=True, kw_only=True, slots=True)
class Provenance:
    """Where plain values of a mapping come from, unless a value says so itself. date: ISO."""

    source: str
    date: str


def read_provenance(reader: Reader, default: Provenance) -> Provenance:
    """The `source` and `date` of a mapping, else the default's."""
    return Provenance(source=reader.text("source", default.source), date=_read_date(reader, default.date))


def read_bytes(reader: Reader, name: str, origin: Provenance) -> Figure:
    """A size such as "80 GiB"."""
    return _read_figure(reader, name, origin, _with_unit(lambda text: float(parse_bytes(text)), example="80 GiB"))


def read_bytes_per_s(reader: Reader, name: str, origin: Provenance) -> Figure:
    """A rate such as "450 GB/s" or "400 Gbit/s"."""
    return _read_figure(reader, name, origin, _with_unit(parse_bytes_per_s, example="450 GB/s or 400 Gbit/s"))


def read_flops_per_s(reader: Reader, name: str, origin: Provenance) -> Figure:
    """A rate such as "989 TFLOP/s"."""
    return _read_figure(reader, name, origin, _with_unit(parse_flops_per_s, example="989 TFLOP/s"))


def read_seconds(reader: Reader, name: str, origin: Provenance) -> Figure:
    """A duration such as "5 us"."""
    return _read_figure(reader, name, origin, _with_unit(parse_seconds, example="5 us"))


def read_share(reader: Reader, name: str, origin: Provenance) -> Figure:
    """A share of something: a number above 0 and at most 1."""
    return _read_figure(reader, name, origin, _share)


def _read_figure(reader: Reader, name: str, origin: Provenance, parse: Callable[[object], float]) -> Figure:
    value = reader.data.get(name)
    if value is None:
        reader.missing(name)
        return _stand_in(origin)
    if not isinstance(value, dict):
        return Figure(
            value=_parsed(reader, name, value, parse),
            basis=Basis.DATASHEET,
            source=origin.source,
            date=origin.date,
        )
    figure = reader.part(name)
    figure.allow(_FIELDS)
    if "value" not in figure:
        figure.missing("value")
        return _stand_in(origin)
    basis = figure.choice("basis", tuple(Basis), Basis.DATASHEET)
    return Figure(
        value=_parsed(figure, "value", figure.data["value"], parse),
        basis=Basis(basis) if basis in tuple(Basis) else Basis.DATASHEET,
        source=figure.text("source", origin.source),
        date=_read_date(figure, origin.date),
    )


def _parsed(reader: Reader, name: str, value: object, parse: Callable[[object], float]) -> float:
    try:
        number = parse(value)
    except ValueError as error:
        reader.fault(name, str(error))
        return 1.0
    if number <= 0:
        reader.fault(name, f"{shown(value)} is not positive; give more than 0")
        return 1.0
    return number


def _with_unit(parse: Callable[[str], float], *, example: str) -> Callable[[object], float]:
    def parsed(value: object) -> float:
        if not isinstance(value, str):
            message = f"is {kind_of(value)}, {shown(value)}; write it with its unit, for example {example}"
            raise ValueError(message)
        return parse(value)

    return parsed


def _share(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        message = f"is {kind_of(value)}, {shown(value)}; it must be a number above 0 and at most 1"
        raise ValueError(message)
    if not 0 < value <= 1:
        message = f"{value} is not a share; it must be above 0 and at most 1"
        raise ValueError(message)
    return float(value)


def _read_date(reader: Reader, default: str) -> str:
    date = reader.text("date", default)
    if date and not _DATE.fullmatch(date):
        reader.fault("date", f"'{date}' is not a date; write it as 2024-12-31")
    return date


def _stand_in(origin: Provenance) -> Figure:
    return Figure(value=1.0, basis=Basis.DATASHEET, source=origin.source, date=origin.date)
