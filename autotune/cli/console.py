"""The rich console on stderr, and the observer that shows progress there. Results go to stdout, never through here."""

import sys

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from autotune.progress import Event, Noted, StageAdvanced, StageFinished, StageStarted, Warned


def stderr_console() -> Console:
    """A console on stderr that respects NO_COLOR and whether stderr is a terminal."""
    return Console(stderr=True, highlight=False)


def write_line(text: str) -> None:
    """One plain line on stdout: never wrapped, never coloured."""
    sys.stdout.write(text + "\n")


class ConsoleObserver:
    """Shows stages as a progress bar and notes as lines. Without a terminal only the lines are printed."""

    def __init__(self, console: Console, *, quiet: bool = False) -> None:
        self._console = console
        self._quiet = quiet
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[current]}"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=quiet or not console.is_terminal,
        )
        self._task: TaskID | None = None

    def __enter__(self) -> "ConsoleObserver":
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def notify(self, event: Event) -> None:
        """Take one event."""
        match event:
            case StageStarted(name=name, total=total):
                self._end_task()
                self._task = self._progress.add_task(escape(name), total=total, current="")
            case StageAdvanced(done=done, current=current) if self._task is not None:
                self._progress.update(self._task, completed=done, current=escape(current))
            case StageAdvanced():
                pass
            case StageFinished(summary=summary):
                self._end_task()
                self._say(summary)
            case Warned(message=message):
                self._console.print(f"[yellow]warning:[/] {escape(message)}", soft_wrap=True)
            case Noted(message=message):
                self._say(message)

    def _say(self, message: str) -> None:
        if message and not self._quiet:
            self._console.print(escape(message), soft_wrap=True)

    def _end_task(self) -> None:
        if self._task is not None:
            self._progress.remove_task(self._task)
            self._task = None
