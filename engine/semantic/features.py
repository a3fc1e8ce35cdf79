"""What a predictor reads of a step: the mean of hidden states over its tokens.

The states are those that the step's tokens are drawn from: of the token before the step, and of all
its own but the last. A step of n tokens has n of them, and all are computed by the time the step is
written. (The paper says "its tokens"; its code takes the same places for the target.)

"All layers" can be read in two ways, since the paper's predictors have inputs as wide as one layer:
the mean over the layers, or the layers side by side in a predictor with a wider input.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

Feature = Literal["last", "stacked", "concatenated"]
"""`last`: the last layer after the final norm. `stacked`: the mean over all layers.
`concatenated`: all layers side by side."""

FEATURES: tuple[Feature, ...] = get_args(Feature)


def all_layers(kind: Feature) -> bool:
    """Whether the states of all layers are needed."""
    return kind != "last"


def size(kind: Feature, layers: int, width: int) -> int:
    """Values of a feature of a model with so many layers."""
    return layers * width if kind == "concatenated" else width


def feature(kind: Feature, means: np.ndarray) -> np.ndarray:
    """The input of a predictor.

    Args:
        means: of the states over the tokens of a step, shape (..., layers, width).

    Returns:
        Shape (..., size).
    """
    if kind == "last":
        return means[..., -1, :]
    if kind == "stacked":
        return means.mean(axis=-2)
    return means.reshape(*means.shape[:-2], -1)
