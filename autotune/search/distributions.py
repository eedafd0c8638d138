"""One Optuna distribution per axis, and the way from a layout to the parameters of a trial and back.

The choices of one name may never change within a study (Optuna refuses it), so they are fixed by the table of valid
layouts, and their fingerprint is part of the study's name: another table is another study.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution

from autotune.spec.axes import AXES
from autotune.spec.layout import Layout, LayoutTable, value_of

Distributions = dict[str, BaseDistribution]


def distributions_of(table: LayoutTable) -> Distributions:
    """Per axis the values that some valid layout has, in ascending order of their codes.

    Not the values an axis could have anywhere. Of the dense space on 64 GPUs, one random proposal in 370 is a layout
    (Llama-3 8B, engine torch: 92,697 of 34 million); with degrees from all of 1 to 64 it would be one in 10⁸.
    """
    return {
        axis.name: CategoricalDistribution([value_of(axis.name, int(code)) for code in _codes(table, axis.name)])
        for axis in AXES
    }


def _codes(table: LayoutTable, name: str) -> list[int]:
    """The distinct codes; counting is faster than sorting a million rows."""
    column = getattr(table, name).astype(np.int64)
    return [int(code) for code in np.flatnonzero(np.bincount(column))]


def fingerprint(distributions: Distributions) -> str:
    """Eight hex digits that change when a distribution does."""
    choices = {
        name: list(distribution.choices)
        for name, distribution in distributions.items()
        if isinstance(distribution, CategoricalDistribution)
    }
    return hashlib.sha256(json.dumps(choices, sort_keys=True).encode()).hexdigest()[:8]


def params_of(layout: Layout) -> dict[str, Any]:
    """The layout as parameters of a trial."""
    return {axis.name: getattr(layout, axis.name) for axis in AXES}


def layout_of(params: Mapping[str, Any]) -> Layout | None:
    """The layout that a trial's parameters name; None where some are missing, as after a kill while it was asked."""
    if any(axis.name not in params for axis in AXES):
        return None
    return Layout(**{axis.name: params[axis.name] for axis in AXES})
