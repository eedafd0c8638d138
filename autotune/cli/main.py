"""The command line: one Typer app, errors mapped to exit codes. Each command parses, calls the workflow, renders."""

import typer

from autotune import __version__
from autotune.cli.accuracy import accuracy
from autotune.cli.check import check
from autotune.cli.console import write_line
from autotune.cli.results import catalog, export, report
from autotune.cli.schedule import schedule
from autotune.cli.tune import tune

app = typer.Typer(
    name="autotune",
    help="Searches parallel layouts for training large models: which are legal, fit, and are fastest.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

app.command()(tune)
app.command()(check)
app.command()(export)
app.command()(report)
app.command()(catalog)
app.command()(schedule)
app.command()(accuracy)


def _print_version(value: bool) -> None:
    if value:
        write_line(f"autotune {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: bool = typer.Option(False, "--version", callback=_print_version, is_eager=True, help="Print the version."),
) -> None:
    """Searches parallel layouts for training large models: which are legal, fit, and are fastest."""


def run() -> None:
    """The entry point of the console script."""
    app()
