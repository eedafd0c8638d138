"""`autotune tune`: rank every legal layout, confirm the best by short real runs."""

import json
from pathlib import Path
from typing import Annotated

import typer

from autotune.cli.console import ConsoleObserver, stderr_console, write_line
from autotune.cli.errors import ends_with_exit_code
from autotune.cli.host import this_command, this_host
from autotune.cli.options import OutputJson, ProblemOptions, problem_request, takes, takes_axes
from autotune.errors import EXIT_NO, EXIT_YES
from autotune.report.as_json import tune_json
from autotune.report.terminal import print_report
from autotune.workflow.plan import TuneRequest
from autotune.workflow.tune import tune as run_tune


@ends_with_exit_code
@takes(ProblemOptions)
@takes_axes(lists=True)
def tune(
    *,
    options: ProblemOptions,
    axes: dict[str, str],
    space: Annotated[str, typer.Option("--space", help="A name or a file of search_spaces/.")] = "dense",
    trials: Annotated[int, typer.Option("--trials", min=0, help="Real runs; 0: the cost model alone.")] = 0,
    timeout: Annotated[
        str | None, typer.Option("--timeout", help='Wall-clock limit of all trials together, e.g. "30 min".')
    ] = None,
    trial_timeout: Annotated[str, typer.Option("--trial-timeout", help="Wall-clock limit of one trial.")] = "10 min",
    baseline: Annotated[
        str | None, typer.Option("--baseline", help="Your layout, a key or a file: kept, scored and run first.")
    ] = None,
    sampler: Annotated[str, typer.Option("--sampler", help="cost, or Optuna's own: tpe, random, nsga2, gp.")] = "cost",
    scale_down: Annotated[
        bool, typer.Option("--scale-down", help="Run a small model of the same kind on this machine instead.")
    ] = False,
    out: Annotated[Path | None, typer.Option("--out", help="Run folder. Default: results/NAME-HASH.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Start over, deleting this run's earlier results.")] = False,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the search and of the trials.")] = 0,
    top: Annotated[int, typer.Option("--top", min=1, help="Layouts to print.")] = 20,
    output_json: OutputJson = False,
) -> int:
    """Rank every legal layout; with --trials, confirm the best by short real runs."""
    request = TuneRequest(
        problem=problem_request(options),
        space=space,
        axes=axes,
        trials=trials,
        timeout=timeout,
        trial_timeout=trial_timeout,
        baseline=baseline,
        sampler=sampler,
        scale_down=scale_down,
        out=out,
        fresh=fresh,
        seed=seed,
        top=top,
        command=this_command(),
    )
    console = stderr_console()
    with ConsoleObserver(console) as observer:
        report = run_tune(request, this_host(), observer)
    if output_json:
        write_line(json.dumps(tune_json(report), indent=2, allow_nan=False))
    else:
        print_report(report)
    return EXIT_YES if report.winner is not None else EXIT_NO
