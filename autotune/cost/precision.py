"""Bytes of one number, by what the workload says of precision."""

from typing import Final

from autotune.spec.workload import GradientDtype, Precision

ELEMENT_BYTES: Final[dict[Precision, int]] = {"bf16": 2, "fp16": 2, "fp32": 4, "fp8": 2}
"""Of a weight or an activation in the matrix products. FP8 recipes cast at the kernel's door and hold bf16 tensors
(Micikevicius et al. 2022, 2209.05433), so FP8 saves no memory here."""

GRADIENT_BYTES: Final[dict[GradientDtype, int]] = {"fp32": 4, "bf16": 2}
"""Of a gradient where it is accumulated and reduced."""

FP32_BYTES: Final = 4
"""Of a master weight and of each optimizer state."""
