import io

from rich.console import Console

from autotune.cli.console import ConsoleObserver
from autotune.progress import Noted, StageAdvanced, StageFinished, StageStarted, Warned


def terminal() -> tuple[Console, io.StringIO]:
    stream = io.StringIO()
    return Console(file=stream, force_terminal=True, width=200, color_system=None), stream


def test_on_a_terminal_the_bar_names_what_runs_and_counts_it():
    console, stream = terminal()

    with ConsoleObserver(console) as observer:
        observer.notify(StageStarted(name="running trials", total=4))
        observer.notify(StageAdvanced(done=1, current="tp2-mbs1"))
        observer._progress.refresh()

    assert "running trials" in stream.getvalue()
    assert "1/4" in stream.getvalue()
    assert "tp2-mbs1" in stream.getvalue()


def test_a_stage_of_unknown_length_is_shown_too():
    console, stream = terminal()

    with ConsoleObserver(console) as observer:
        observer.notify(StageStarted(name="enumerating layouts"))
        observer.notify(StageFinished(summary="12 layouts"))

    assert "enumerating layouts" in stream.getvalue()
    assert "12 layouts" in stream.getvalue()


def test_markup_in_a_value_of_the_user_is_printed_as_it_is():
    console, stream = terminal()

    with ConsoleObserver(console) as observer:
        observer.notify(Warned(message="model [red]x[/red] is unknown"))
        observer.notify(Noted(message="[bold]"))

    assert "model [red]x[/red] is unknown" in stream.getvalue()
    assert "[bold]" in stream.getvalue()


def test_without_a_terminal_there_is_no_bar():
    stream = io.StringIO()

    with ConsoleObserver(Console(file=stream, width=100)) as observer:
        observer.notify(StageStarted(name="enumerating layouts"))
        observer.notify(StageFinished(summary="12 layouts"))

    assert stream.getvalue() == "12 layouts\n"
