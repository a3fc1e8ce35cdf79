"""How sure a share of correct answers is."""

from __future__ import annotations

from math import sqrt

Z_95 = 1.959964
"""Standard normal quantile of a two-sided 95 % interval."""


def wilson(correct: int, total: int, z: float = Z_95) -> tuple[float, float]:
    """Wilson's score interval, which also holds for few trials and for shares near 0 or 1."""
    if total == 0:
        return (0.0, 1.0)
    share = correct / total
    scale = 1 + z * z / total
    middle = share + z * z / (2 * total)
    spread = z * sqrt(share * (1 - share) / total + z * z / (4 * total * total))
    return (max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale))


def accuracy_line(correct: int, total: int) -> str:
    """The share with its interval, in words."""
    low, high = wilson(correct, total)
    return (
        f"accuracy {correct / total:.1%} ({correct} of {total} correct,"
        f" 95 % interval {low:.1%} to {high:.1%})"
    )
