"""What every launch file has in common: header, machines, rendering. Values from files are quoted for its language."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from autotune.engines.protocol import Prediction
from autotune.spec.layout import Layout
from autotune.spec.workload import Problem
from autotune.units import format_bytes, format_seconds

Flags = list[tuple[str, ...]]
"""Flags of a command line, each with its values."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Machines:
    """What a layout runs on. segment: nodes that share an NVLink domain larger than a node, 0 where there is none."""

    nodes: int
    processes_per_node: int
    segment: int = 0


def machines_of(layout: Layout, problem: Problem) -> Machines:
    """The fewest equal nodes of the cluster that hold the layout."""
    cluster = problem.cluster
    nodes = next(
        count
        for count in range(-(-layout.gpus // cluster.gpus_per_node), layout.gpus + 1)
        if layout.gpus % count == 0
    )  # fmt: skip
    segment = cluster.nvlink_domain_gpus // cluster.gpus_per_node
    return Machines(
        nodes=nodes,
        processes_per_node=layout.gpus // nodes,
        segment=segment if segment > 1 and nodes % segment == 0 else 0,
    )


def header(engine: str, versions: str, layout: Layout, problem: Problem, prediction: Prediction) -> str:
    """The comment that opens a launch file. `#` starts a comment in every language that we write."""
    workload = problem.workload
    lines = (
        f"{problem.model.name} on {problem.cluster.name}: layout {layout.key}",
        f"engine: {engine} {versions}",
        f"predicted: step {format_seconds(prediction.step_time_s)}, peak memory "
        f"{format_bytes(prediction.peak_memory_bytes)} of {format_bytes(prediction.limit_bytes)} a GPU "
        f"(basis: {prediction.basis})",
        f"batch: {workload.global_batch_size} sequences of {workload.sequence_length} tokens = micro-batches of "
        f"{layout.micro_batch_size} · {layout.num_microbatches(workload.global_batch_size)} a step · dp {layout.dp}",
        f"made by: {prediction.command}",
    )
    return "\n".join(f"# {one_line(line)}" for line in lines)


def one_line(text: str) -> str:
    """The text with everything that could end a line, or hide in one, as a space."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def shell_words(flag: Sequence[str]) -> str:
    """A flag and its values, quoted for a POSIX shell."""
    return shlex.join(flag)


def render(template: str, values: dict[str, object]) -> str:
    """A template of `templates/` with its values. Filters: `words` quotes a flag for the shell, `python` a literal."""
    # Here and not above: jinja2 takes 60 ms to import, and only an export needs it.
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("autotune.engines"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # shell and Python, not HTML: the filters below quote
    )
    environment.filters["words"] = shell_words
    environment.filters["python"] = repr
    return environment.get_template(template).render(values)
