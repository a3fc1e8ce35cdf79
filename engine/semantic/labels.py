# ruff: noqa: RUF001 - signs that look like others are what this is about
"""Which sampled steps mean the same, and the shares that predictors learn."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Sequence

Clusters = Callable[[str, Sequence[str]], list[int]]
"""Given the text before some steps, and the steps: the number of the cluster each belongs to."""

_NUMBER = r"-?\d+(?:\.\d+)?"
_EQUATION = re.compile(rf"({_NUMBER})\s*([-+*/×÷·])\s*({_NUMBER})\s*=\s*({_NUMBER})")
_BOXED = re.compile(r"\\boxed\{([^{}]*)\}")
_SIGNS = str.maketrans("×÷·", "*/*")


def by_equations(context: str, steps: Sequence[str]) -> list[int]:
    """Steps that state the same equations and the same boxed answer mean the same.

    Operands of sums and products may change places. A step that states nothing of the kind means
    the same as one with the same words.
    """
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(_meaning(step), len(numbers)) for step in steps]


def _meaning(step: str) -> Hashable:
    stated = [_equation(*found) for found in _EQUATION.findall(step)]
    boxed = [text.strip() for text in _BOXED.findall(step)]
    if stated or boxed:
        return tuple(stated), tuple(boxed)
    return " ".join(re.findall(r"\w+", step.lower()))


def _equation(left: str, sign: str, right: str, result: str) -> tuple[str, float, float, float]:
    sign = sign.translate(_SIGNS)
    first, second = float(left), float(right)
    if sign in "+*" and first > second:
        first, second = second, first
    return sign, first, second, float(result)


def by_entailment(entails: Callable[[str, str, str], bool]) -> Clusters:
    """Clusters by entailment in both directions.

    Args:
        entails: given the text before, and two steps: whether the second follows from both. Each
            step is compared with the first of every cluster, in order, and joins the first that
            it follows from and that follows from it.
    """

    def clusters(context: str, steps: Sequence[str]) -> list[int]:
        firsts: list[str] = []
        known: dict[str, int] = {}
        for step in steps:
            if step in known:
                continue
            for number, first in enumerate(firsts):
                if entails(context, first, step) and entails(context, step, first):
                    known[step] = number
                    break
            else:
                known[step] = len(firsts)
                firsts.append(step)
        return [known[step] for step in steps]

    return clusters


def shares(clusters: Sequence[int], reference: Sequence[int]) -> list[float]:
    """Of each step: the share of the reference steps that are of its cluster."""
    counts = Counter(reference)
    return [counts[cluster] / len(reference) for cluster in clusters]
