"""The norm of a ModelSpec."""

from torch import nn

from autotune.spec.model import ModelSpec

EPSILON = 1e-5
"""Llama 3's; it changes no shape and no time."""


def norm_over(model: ModelSpec, width: int) -> nn.Module:
    """RMSNorm or LayerNorm over the last `width` values, with a shift where the model has one."""
    if model.norm == "rmsnorm":
        return nn.RMSNorm(width, eps=EPSILON)
    return nn.LayerNorm(width, eps=EPSILON, bias=model.norm_bias)
