"""What a verifier must be able to do, in the order in which it should be asked.

Pooled accuracy over steps says little: it rewards knowing how far a solution
has come. These questions cannot be answered from position or length.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from statistics import mean

from engine.seedling.corpus import Document, equation_document, random_equation, verifier_document
from engine.seedling.corrupt import corrupt
from engine.seedling.problems import held_out


@dataclass(frozen=True)
class Mark:
    """The score at one step marker of a document."""

    segment: int
    right: bool
    score: float


def auc(right: list[float], wrong: list[float]) -> float:
    """How often a right one scores above a wrong one (ties count half)."""
    if not right or not wrong:
        return float("nan")
    wins = sum((r > w) + 0.5 * (r == w) for r in right for w in wrong)
    return wins / (len(right) * len(wrong))


def equation_documents(count: int, seed: int) -> list[Document]:
    rng = random.Random(f"equations-{seed}")
    return [equation_document(random_equation(rng), n % 2 == 0, rng) for n in range(count)]


def story_documents(count: int, seed: int, size: int) -> list[Document]:
    """Held-out stories, each with its right solution and corrupted ones."""
    rng = random.Random(f"stories-{seed}")
    return [
        verifier_document(problem, [corrupt(problem, rng) for _ in range(6)], size)
        for problem in held_out(count, seed)
    ]


def until_first_error(marks: list[Mark]) -> list[Mark]:
    """Without the steps that follow a wrong one in their branch."""
    fallen: set[int] = set()
    kept: list[Mark] = []
    for mark in marks:
        if mark.segment not in fallen:
            kept.append(mark)
            if not mark.right:
                fallen.add(mark.segment)
    return kept


def report(equations: list[list[Mark]], stories: list[list[Mark]]) -> dict[str, float]:
    """The four gates: equations, twins, up to the first error, within a problem."""
    flat = [mark for marks in equations for mark in marks]
    kept = [until_first_error(marks) for marks in stories]
    pooled = [mark for marks in kept for mark in marks]
    # A wrong branch against the right solution it left: the worst step decides.
    twins: list[float] = []
    for marks in stories:
        trunk = min(mark.score for mark in marks if mark.segment == 0)
        for segment in {mark.segment for mark in marks if not mark.right}:
            worst = min(mark.score for mark in marks if mark.segment == segment)
            twins.append((worst < trunk) + 0.5 * (worst == trunk))
    within = [_auc(marks) for marks in kept if any(not mark.right for mark in marks)]
    return {
        "equations": _auc(flat),
        "twins": mean(twins),
        "first error": _auc(pooled),
        "within": mean(within),
    }


def _auc(marks: list[Mark]) -> float:
    return auc([m.score for m in marks if m.right], [m.score for m in marks if not m.right])
