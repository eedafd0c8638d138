"""What a long call tells its caller while it works: events, and the observer that receives them."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, kw_only=True, slots=True)
class StageStarted:
    """A part of the work began, e.g. "enumerating layouts"; `total` steps are expected, None if unknown."""

    name: str
    total: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class StageAdvanced:
    """`done` of the running stage's steps are finished; `current` names what runs now."""

    done: int
    current: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class StageFinished:
    """The running stage ended; `summary` says with what."""

    summary: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Warned:
    """Something the user should know although the work goes on."""

    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Noted:
    """One line of the run's story: a trial ended, the calibration moved, a layout was ruled out."""

    message: str


Event = StageStarted | StageAdvanced | StageFinished | Warned | Noted


class Observer(Protocol):
    """Receives events. Must return quickly and never raise."""

    def notify(self, event: Event) -> None:
        """Take one event."""


class SilentObserver:
    """Ignores everything."""

    def notify(self, event: Event) -> None:
        """Drop the event."""
