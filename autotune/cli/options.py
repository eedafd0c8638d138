"""Options that several commands share, declared once; the axis options derive from AXES."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, asdict, dataclass, fields
from typing import Annotated, Any, get_type_hints

import typer

from autotune.spec.axes import AXES, Axis, AxisKind
from autotune.spec.axis_text import flag_of
from autotune.workflow.problem import ProblemRequest

OutputJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")]


@dataclass(frozen=True, kw_only=True, slots=True)
class ProblemOptions:
    """What is trained, and where."""

    model: Annotated[str, typer.Option("--model", help="A Hugging Face config.json, its folder, or a catalog name.")]
    cluster: Annotated[str, typer.Option("--cluster", help="A YAML file, NODESxGPUSxGPU such as 64x8xh100, or local.")]
    global_batch_size: Annotated[int, typer.Option("--global-batch-size", help="Sequences per optimizer step.")]
    sequence_length: Annotated[int, typer.Option("--seq-len", help="Tokens per sequence.")]
    engine: Annotated[str, typer.Option("--engine", help="torch, megatron-lm or torchtitan.")] = "torch"
    precision: Annotated[str, typer.Option("--precision", help="bf16, fp16, fp32 or fp8.")] = "bf16"
    optimizer: Annotated[str, typer.Option("--optimizer", help="adamw or sgd.")] = "adamw"
    gradient_dtype: Annotated[str, typer.Option("--gradient-dtype", help="fp32 or bf16.")] = "fp32"
    attention: Annotated[str, typer.Option("--attention", help="flash or unfused.")] = "flash"
    memory_limit: Annotated[
        str | None,
        typer.Option("--memory-limit", help='Memory per GPU to plan with, e.g. "70 GiB". Default: what is usable.'),
    ] = None


def problem_request(options: ProblemOptions) -> ProblemRequest:
    """The options as the workflow takes them."""
    return ProblemRequest(**asdict(options))


def takes(group: type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command the options of a dataclass; the command receives one instance as keyword `options`."""
    hints = get_type_hints(group, include_extras=True)
    added = [
        inspect.Parameter(
            f.name, inspect.Parameter.KEYWORD_ONLY, default=_default_of(f), annotation=hints[f.name]
        )
        for f in fields(group)
    ]  # fmt: skip
    return _adding(added, lambda values: {"options": group(**values)})


def takes_axes(*, lists: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command one option per axis; it receives the given ones as keyword `axes`: {name: text}."""
    added = [
        inspect.Parameter(
            axis.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[
                str | None,
                typer.Option(flag_of(axis.name), metavar=_metavar(axis, lists=lists), help=_help(axis, lists=lists)),
            ],
        )
        for axis in AXES
    ]
    return _adding(added, lambda values: {"axes": {name: text for name, text in values.items() if text is not None}})


def _default_of(field: Field[Any]) -> object:
    return inspect.Parameter.empty if field.default is MISSING else field.default


def _adding(
    added: list[inspect.Parameter], collect: Callable[[dict[str, Any]], dict[str, Any]]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    names = {parameter.name for parameter in added}

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def wrapper(**values: Any) -> Any:
            given = {name: values.pop(name) for name in list(values) if name in names}
            return command(**values, **collect(given))

        own = [p for p in inspect.signature(command).parameters.values() if p.name not in {"options", "axes"}]
        kept = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own]
        parameters = sorted([*added, *kept], key=lambda p: p.default is not inspect.Parameter.empty)
        wrapper.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        wrapper.__annotations__ = {p.name: p.annotation for p in parameters}
        return wrapper

    return decorate


def _metavar(axis: Axis, *, lists: bool) -> str:
    if axis.kind is AxisKind.FLAG:
        word = "true|false"
    elif axis.choices and len(axis.choices) <= 4:
        word = "|".join(str(choice) for choice in axis.choices)
    else:
        word = "NAME" if axis.choices else "N"
    return f"{word},..." if lists else word


def _help(axis: Axis, *, lists: bool) -> str:
    text = axis.help[0].upper() + axis.help[1:] + "."
    return f"{text} Pins the axis or lists its values." if lists else text
