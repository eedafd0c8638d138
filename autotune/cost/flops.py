"""Floating-point operations that the model needs, and the utilisation that follows from a step time.

The convention is the one that reproduces NVIDIA's Megatron-Bridge performance tables: the input embedding does not
count, the head does, causal attention counts half, recomputation never counts; norms, biases and the router, which are
no large matrix products, do not count either (Megatron-LM's `num_floating_point_operations`).
"""

from dataclasses import replace

from autotune.cost.kernels import peak_flops_per_s
from autotune.cost.parameters import active_parameters, embedding_parameters, mixture_layers
from autotune.spec.layout import FloatColumn
from autotune.spec.model import ModelSpec
from autotune.spec.workload import Problem


def model_flops_per_token(model: ModelSpec, sequence_length: int) -> float:
    """Forward and backward of one token.

        6 * (N - V*h) + 6 * L * a*d * s          (dense, full attention)

    N: matrix parameters a token passes; V*h: the input embedding (a tied head still multiplies); a*d: heads times head
    size, the mean of the key and the value side; s: sequence length. A windowed layer sees fewer keys than s/2.
    """
    windowed = model.sliding_window_layers
    keys = (model.num_hidden_layers - windowed) * mean_keys(sequence_length)
    if windowed:
        keys += windowed * mean_keys(sequence_length, model.sliding_window)
    return 6.0 * matrix_parameters(model) + 12.0 * attention_width(model) * keys


def matrix_parameters(model: ModelSpec) -> int:
    """Parameters of the matrix products that one token passes, the head among them."""
    bare = replace(
        model, norms_per_layer=0, final_norm=False, qk_norm=False, embedding_norm=False, learned_positions=0,
        qkv_bias=False, attention_output_bias=False, mlp_bias=False, head_bias=False, attention_sinks=False,
        moe=replace(model.moe, router_bias=False, shared_expert_gate=False) if model.moe else None,
    )  # fmt: skip
    router = mixture_layers(bare) * bare.hidden_size * bare.moe.num_experts if bare.moe else 0
    return active_parameters(bare) - router - (0 if bare.tied_embeddings else embedding_parameters(bare))


def mean_keys(sequence_length: int, window: int = 0) -> float:
    """Keys that a causal query sees on average: s/2, or w - w^2/(2s) behind a window of w < s."""
    w = min(window, sequence_length) if window else sequence_length
    return w - w * w / (2 * sequence_length)


def attention_width(model: ModelSpec) -> float:
    """Heads times head size, the mean of query-key and value where latent attention has two sizes."""
    if model.mla is None:
        return float(model.num_attention_heads * model.head_dim)
    key = model.mla.qk_nope_head_dim + model.mla.qk_rope_head_dim
    return model.num_attention_heads * (key + model.mla.v_head_dim) / 2


def model_flops_per_step(problem: Problem) -> float:
    """Forward and backward of one global batch."""
    per_token = model_flops_per_token(problem.model, problem.workload.sequence_length)
    return per_token * problem.workload.tokens_per_step


def model_flops_utilisation(problem: Problem, step_s: FloatColumn, gpus: FloatColumn | int) -> FloatColumn:
    """Share of the GPUs' dense peak (at the workload's precision) that the model's own operations use.

    Raises InputError if the GPU has no peak for that precision.
    """
    peak = peak_flops_per_s(problem.cluster.gpu, problem.workload.precision)
    utilisation: FloatColumn = model_flops_per_step(problem) / (step_s * gpus * peak)
    return utilisation
