"""Step times from printed FLOP rates, by the rule with which each source counts the operations of a token."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from autotune.cost.parameters import active_parameters
from autotune.spec.measured import MeasuredRun, with_step_time
from autotune.spec.model import ModelSpec


@dataclass(frozen=True, kw_only=True, slots=True)
class FlopRule:
    """flops_per_token: of forward and backward, as the source counts them.

    token_grain: tokens per second that are a multiple of this were rounded, more coarsely than the FLOP rate was.
    """

    flops_per_token: Callable[[ModelSpec, int], float]
    token_grain: float | None = None
    text: str


def _attention_width(model: ModelSpec) -> int:
    return model.num_attention_heads * model.head_dim


def _without_embedding(model: ModelSpec, sequence: int) -> float:
    """6(N - V·h) + 6·L·h·s."""
    body = active_parameters(model) - model.vocab_size * model.hidden_size
    return 6.0 * body + 6.0 * model.num_hidden_layers * _attention_width(model) * sequence


def _with_embedding(model: ModelSpec, sequence: int) -> float:
    """6N + 12·L·h·s."""
    return 6.0 * active_parameters(model) + 12.0 * model.num_hidden_layers * _attention_width(model) * sequence


def _gpt(model: ModelSpec, sequence: int) -> float:
    """72·L·h²·(1 + s/6h + V/12hL)."""
    h, layers = model.hidden_size, model.num_hidden_layers
    return 72.0 * layers * h * h * (1 + sequence / (6 * h) + model.vocab_size / (12 * h * layers))


def _gpt_recomputed(model: ModelSpec, sequence: int) -> float:
    """96·L·h²·(1 + s/6h + V/16hL): the forward pass counted twice."""
    h, layers = model.hidden_size, model.num_hidden_layers
    return 96.0 * layers * h * h * (1 + sequence / (6 * h) + model.vocab_size / (16 * h * layers))


RULES: Final[Mapping[str, FlopRule]] = {
    "megatron_bridge_perf": FlopRule(flops_per_token=_without_embedding, token_grain=64.0, text="6(N - V·h) + 6·L·h·s"),
    "hf_ultrascale_playbook": FlopRule(flops_per_token=_with_embedding, text="6N + 12·L·h·s"),
    "mosaicml_llm_foundry": FlopRule(flops_per_token=_with_embedding, text="6N + 12·L·h·s"),
    "torchtitan_docs": FlopRule(flops_per_token=_with_embedding, text="6N + 12·L·h·s"),
    "kwai_atc24": FlopRule(flops_per_token=_without_embedding, text="6(N - V·h) + 6·L·h·s"),
    "megatron_korthikanti2022": FlopRule(flops_per_token=_gpt, text="72·L·h²(1 + s/6h + V/12hL)"),
    "vocab_parallelism": FlopRule(flops_per_token=_gpt, text="72·L·h²(1 + s/6h + V/12hL)"),
    "bigscience_bloom_prequel": FlopRule(flops_per_token=_gpt_recomputed, text="96·L·h²(1 + s/6h + V/16hL)"),
    "oneflow_dlperf_gpt": FlopRule(flops_per_token=_gpt_recomputed, text="96·L·h²(1 + s/6h + V/16hL)"),
}
"""By source. Each reproduces the figures that the source prints."""

ROUNDING: Final = 0.02
"""How far a step time from tokens may be from one from FLOPs before the rule is taken not to be the source's."""


def complete(run: MeasuredRun) -> MeasuredRun:
    """The run, with a step time from its FLOP rate where it has no other, or where that one is printed more finely."""
    rule = RULES.get(run.source)
    rate = _flops_per_s(run)
    if rule is None or rate is None:
        return run
    flops = rule.flops_per_token(run.problem.model, run.problem.workload.sequence_length)
    step_time_s = flops * run.problem.workload.tokens_per_step / (rate * run.sweep.gpus)
    if run.step_time_s is None:
        return with_step_time(run, step_time_s, f"the step time is worked out from the FLOP rate: {rule.text}")
    if not _tokens_are_rounded(run, rule) or abs(step_time_s / run.step_time_s - 1) > ROUNDING:
        return run
    return with_step_time(run, step_time_s, f"tokens per second are rounded, the FLOP rate is not: {rule.text}")


def _tokens_are_rounded(run: MeasuredRun, rule: FlopRule) -> bool:
    tokens = run.throughput.tokens_per_s_per_gpu
    return rule.token_grain is not None and tokens is not None and tokens % rule.token_grain == 0


def _flops_per_s(run: MeasuredRun) -> float | None:
    """Per GPU: as printed, else the share of the peak at the run's precision."""
    printed = run.throughput
    if printed.tflops_per_gpu is not None:
        return printed.tflops_per_gpu * 1e12
    peak = run.problem.cluster.gpu.peak_flops_per_s.get(run.problem.workload.precision)
    if printed.mfu is None or peak is None:
        return None
    # Printed as a share or in per cent; a share is never above 1, and no run has an MFU below 1 %.
    return (printed.mfu if printed.mfu <= 1 else printed.mfu / 100) * peak.value
