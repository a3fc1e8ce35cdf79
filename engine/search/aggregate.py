"""How the step scores of a path become one score."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Literal

Aggregate = Literal["last", "min", "prod", "mean"]
"""`last`, `min` and `prod` are search-and-learn's; `mean` is FastTTS's addition."""

AGGREGATES: Mapping[Aggregate, Callable[[Sequence[float]], float]] = {
    "last": lambda scores: scores[-1],
    "min": min,
    "prod": math.prod,
    "mean": fmean,
}


def aggregate(how: Aggregate, scores: Sequence[float]) -> float:
    """One score in [0, 1] for a path; 0 for a path that was never scored."""
    return AGGREGATES[how](scores) if scores else 0.0
