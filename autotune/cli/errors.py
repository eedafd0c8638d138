"""From an exception to a sentence on stderr and an exit code."""

import functools
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape

from autotune.cli.console import stderr_console
from autotune.errors import EXIT_BUG, EXIT_INTERRUPTED, EXIT_NO, AutotuneError, InputError


def ends_with_exit_code(command: Callable[..., int]) -> Callable[..., None]:
    """A command that returns an exit code, made to end the process with it, also when it raises."""

    @functools.wraps(command)
    def wrapper(**values: Any) -> None:
        try:
            code = command(**values)
            sys.stdout.flush()
        except BrokenPipeError:
            _drop_stdout()
            code = EXIT_NO
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the last line of defence
            code = explain(error, stderr_console())
        raise typer.Exit(code)

    return wrapper


def _drop_stdout() -> None:
    """The reader of our output is gone, as with `| head`: nobody needs to hear more, not at the end either."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def explain(error: BaseException, console: Console) -> int:
    """Print what went wrong and return the exit code. What is not ours is a bug: its traceback is shown."""
    match error:
        case InputError(faults=faults):
            for fault in faults:
                _say(console, str(fault))
            return error.exit_code
        case AutotuneError() if error.exit_code != EXIT_BUG:
            _say(console, str(error))
            return error.exit_code
        case KeyboardInterrupt():
            _say(console, "interrupted; the same command continues the run")
            return EXIT_INTERRUPTED
        case _:
            console.print("".join(traceback.format_exception(error)), markup=False, soft_wrap=True)
            _say(console, "this is a bug of autotune: please report it with the lines above and the command")
            return EXIT_BUG


def _say(console: Console, sentence: str) -> None:
    console.print(f"[red]error:[/] {escape(sentence)}", soft_wrap=True)
