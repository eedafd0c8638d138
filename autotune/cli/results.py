"""`autotune export`, `report` and `catalog`: what there is, and what a run has left."""

import json
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.table import Table
from rich.text import Text

from autotune.cli.console import write_line
from autotune.cli.errors import ends_with_exit_code
from autotune.cli.host import this_command
from autotune.cli.options import OutputJson
from autotune.errors import EXIT_YES
from autotune.report.as_json import tune_json
from autotune.report.markdown import report_markdown
from autotune.report.terminal import print_report, stdout_console
from autotune.spec.listing import CatalogEntry, catalog_clusters, catalog_gpus, catalog_models
from autotune.spec.load import to_json
from autotune.workflow.launch import export as run_export
from autotune.workflow.launch import read_run

RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="The folder that `autotune tune` left.")]


@ends_with_exit_code
def export(
    *,
    run: RunArgument,
    to: Annotated[str, typer.Option("--to", help="megatron-lm, torchtitan or torchrun.")],
    place: Annotated[int, typer.Option("--place", min=1, help="Which layout of the ranking.")] = 1,
    out: Annotated[Path | None, typer.Option("--out", help="Folder to write to. Default: RUN/launch/TARGET.")] = None,
) -> int:
    """Write the launch files of a ranked layout."""
    folder = out or run / "launch" / to
    for path in run_export(run, place=place, target=to, out=folder, command=this_command()):
        write_line(str(path))
    return EXIT_YES


@ends_with_exit_code
def report(
    *,
    run: RunArgument,
    form: Annotated[Literal["terminal", "markdown"], typer.Option("--format", help="How to print it.")] = "terminal",
    output_json: OutputJson = False,
) -> int:
    """Print the report of a run again."""
    found = read_run(run)
    if output_json:
        write_line(json.dumps(tune_json(found), indent=2, allow_nan=False))
    elif form == "markdown":
        write_line(report_markdown(found).rstrip("\n"))
    else:
        print_report(found)
    return EXIT_YES


@ends_with_exit_code
def catalog(*, output_json: OutputJson = False) -> int:
    """List the models, GPUs and clusters that have a name, each with its source."""
    sections = {"models": catalog_models(), "gpus": catalog_gpus(), "clusters": catalog_clusters()}
    if output_json:
        entries = {name: [to_json(entry) for entry in section] for name, section in sections.items()}
        write_line(json.dumps(entries, indent=2))
    else:
        for name, section in sections.items():
            _print_section(name, section)
    return EXIT_YES


def _print_section(name: str, section: tuple[CatalogEntry, ...]) -> None:
    table = Table(title=name, title_justify="left", box=None, pad_edge=False)
    for column in ("name", "what it is", "source"):
        table.add_column(column, overflow="fold")
    for entry in section:
        table.add_row(Text(entry.name), Text(entry.summary), Text(entry.source))
    console = stdout_console()
    console.print(table)
    console.print()
