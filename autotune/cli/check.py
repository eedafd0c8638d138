"""`autotune check`: one layout. Legal? Does it fit? How fast?"""

import json
from typing import Annotated

import typer

from autotune import __version__
from autotune.cli.console import write_line
from autotune.cli.errors import ends_with_exit_code
from autotune.cli.host import this_host
from autotune.cli.options import OutputJson, ProblemOptions, problem_request, takes, takes_axes
from autotune.errors import EXIT_NO, EXIT_YES
from autotune.report.as_json import check_json
from autotune.report.terminal import print_check
from autotune.spec.verdict import Verdict
from autotune.workflow.check import CheckAnswer, CheckRequest
from autotune.workflow.check import check as run_check


@ends_with_exit_code
@takes(ProblemOptions)
@takes_axes(lists=False)
def check(
    *,
    options: ProblemOptions,
    axes: dict[str, str],
    layout: Annotated[
        str | None,
        typer.Argument(metavar="[LAYOUT]", help="A layout file or key; axis options win over it.", show_default=False),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit 1 also when the layout is borderline.")] = False,
    output_json: OutputJson = False,
) -> int:
    """Answer for one layout: all broken rules, or memory and time by part, and a verdict."""
    answer = run_check(CheckRequest(problem=problem_request(options), layout=layout, axes=axes), this_host())
    if output_json:
        document = check_json(
            answer.ranked,
            parameters=answer.parameters,
            active_parameters=answer.active_parameters,
            tool_version=__version__,
        )
        write_line(json.dumps(document, indent=2, allow_nan=False))
    else:
        print_check(answer.ranked, answer.problem, answer.engine, warnings=answer.warnings, notes=_notes(answer))
    accepted = {Verdict.FITS} if strict else {Verdict.FITS, Verdict.BORDERLINE}
    return EXIT_YES if answer.ranked.verdict in accepted else EXIT_NO


def _notes(answer: CheckAnswer) -> tuple[str, ...]:
    nearest = ", ".join(layout.key for layout in answer.repairs)
    return (*answer.notes, *((f"nearest legal layouts: {nearest}",) if nearest else ()))
