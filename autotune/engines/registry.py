"""ENGINES by the name of --engine, EXPORTERS by the name of --to."""

from typing import Final

from autotune.engines.megatron_lm import MEGATRON_LM
from autotune.engines.protocol import Engine
from autotune.engines.torch import TORCH
from autotune.engines.torchtitan import TORCHTITAN

ENGINES: Final[dict[str, Engine]] = {engine.name: engine for engine in (TORCH, MEGATRON_LM, TORCHTITAN)}

EXPORTERS: Final[dict[str, Engine]] = {"megatron-lm": MEGATRON_LM, "torchtitan": TORCHTITAN, "torchrun": TORCH}
"""torchrun starts our own worker; the other targets have the name of their engine."""
