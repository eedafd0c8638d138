"""The tree of errors that we raise, each with the exit code it maps to.

What a trial does is a value (`spec.outcome.Failed`), never one of these.
"""

from collections.abc import Iterable
from dataclasses import dataclass

EXIT_YES = 0
EXIT_NO = 1
EXIT_INPUT = 2
EXIT_ENVIRONMENT = 3
EXIT_BUG = 4
EXIT_INTERRUPTED = 130


class AutotuneError(Exception):
    """Anything that ends a command with a sentence. A plain one is a bug of ours."""

    exit_code = EXIT_BUG


class NoAnswerError(AutotuneError):
    """The question was understood and the answer is no: nothing fits, no layout exists."""

    exit_code = EXIT_NO


class EnvironmentFaultError(AutotuneError):
    """The input is fine but this machine is not up to it: no torch, not the target cluster, a live run."""

    exit_code = EXIT_ENVIRONMENT


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """One thing wrong with the input.

    where: the file or option, key: the dotted key in it ("" for the whole), message: what is wrong, the value, the
    limit and the way out, as one sentence.
    """

    where: str
    key: str = ""
    message: str

    def __str__(self) -> str:
        place = f"{self.where}: {self.key}" if self.key else self.where
        return f"{place}: {self.message}"


class InputError(AutotuneError):
    """Malformed input. Holds all faults that were found, not only the first."""

    exit_code = EXIT_INPUT

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(str(fault) for fault in self.faults))

    @classmethod
    def one(cls, message: str, *, where: str, key: str = "") -> "InputError":
        """An error with a single fault."""
        return cls([Fault(where=where, key=key, message=message)])
