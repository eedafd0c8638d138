"""Verdict: what is said of a layout. Origin: where the value of an axis came from."""

from enum import StrEnum


class Verdict(StrEnum):
    """The first four come from the model, the last two from a trial."""

    FITS = "fits"
    BORDERLINE = "borderline"
    DOES_NOT_FIT = "does-not-fit"
    INVALID = "invalid"
    OUT_OF_MEMORY = "out-of-memory"
    FAILED = "failed"


class Origin(StrEnum):
    """Where the value of an axis came from."""

    GIVEN = "given"
    SEARCHED = "searched"
    ENGINE_DEFAULT = "engine default"
    DERIVED = "derived"
    OFF = "off"
