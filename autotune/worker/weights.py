"""First values of the parameters: each is drawn whole from its own name and the seed, so that a layout changes none."""

import hashlib

import torch
from torch import nn

BIAS_STD = 0.02
"""Not zero, so that a bias that is added twice shows in the first loss."""


def seed_of(seed: int, *names: object) -> int:
    """A seed for one thing by its name, the same on every rank and in every process."""
    text = ":".join(str(part) for part in (seed, *names))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def materialize(module: nn.Module, *, prefix: str, device: torch.device, seed: int) -> None:
    """Give a module on "meta" memory on `device` and its first values. prefix: its name in the whole model."""
    module.to_empty(device=device)
    with torch.no_grad():
        for name, parameter in module.named_parameters(prefix=prefix):
            _fill(parameter, name, seed)


def _fill(parameter: torch.Tensor, name: str, seed: int) -> None:
    if _is_norm_scale(name):
        parameter.fill_(1.0)
        return
    generator = torch.Generator(device=parameter.device).manual_seed(seed_of(seed, name))
    # Weights keep the variance of what they multiply (LeCun et al. 1998, Efficient BackProp, section 4.6).
    std = parameter.shape[-1] ** -0.5 if parameter.dim() > 1 else BIAS_STD
    parameter.normal_(std=std, generator=generator)


def _is_norm_scale(name: str) -> bool:
    *_, module, kind = name.split(".")
    return module.endswith("norm") and kind == "weight"
