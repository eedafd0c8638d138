"""`autotune accuracy`: how well the cost model predicts runs that others measured."""

from pathlib import Path
from typing import Annotated

import typer

from autotune.cli.errors import ends_with_exit_code
from autotune.cli.options import OutputJson


@ends_with_exit_code
def accuracy(
    *,
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FILE.csv ...]", help="Measured runs. Default: those that autotune ships."),
    ] = None,
    calibrate: Annotated[
        int, typer.Option("--calibrate", min=0, help="Fit on the first K layouts of each sweep, score the rest.")
    ] = 0,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the whole report as markdown.", show_default=False)
    ] = None,
    plots: Annotated[
        Path | None, typer.Option("--plots", help="Write pictures into this folder.", show_default=False)
    ] = None,
    output_json: OutputJson = False,
) -> int:
    """Predict runs that others measured, and score the predictions."""
    # Imported here: it brings SciPy, which would more than double the start of every other command.
    from autotune.cli.accuracy_tables import answer

    return answer(tuple(files or ()), calibrate=calibrate, output=output, plots=plots, output_json=output_json)
