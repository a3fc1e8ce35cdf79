"""Beam search that gives better survivors more children."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from engine.search.beam import Beam
from engine.search.policy import Branch, Candidate

FLOOR = 1e-6
"""Added to every share, so that survivors of equal score share equally."""


@dataclass(frozen=True)
class DynamicBranching(Beam):
    """Beam search whose survivors get children in proportion to their scores.

    The rule of the FastTTS artifact: a survivor's share of the `n` branches is its score above
    the worst survivor's. Shares are rounded down and what is left goes to the largest
    fractions, the earlier survivor first on a tie. A survivor without children is pruned.
    """

    def _expand(self, survivors: Sequence[Candidate]) -> tuple[Branch, ...]:
        """The branches of the next round, those of a survivor side by side."""
        return tuple(
            Branch(survivor.lineage, child)
            for survivor, copies in zip(survivors, self._copies(survivors), strict=True)
            for child in range(copies)
        )

    def _copies(self, survivors: Sequence[Candidate]) -> list[int]:
        """How many of the `n` branches each survivor gets."""
        if not survivors:
            return []
        if len(survivors) == self.n:
            return [1] * self.n
        scores = [self._score(s) for s in survivors]
        weights = [score - min(scores) + FLOOR for score in scores]
        shares = [weight / sum(weights) * self.n for weight in weights]
        copies = [math.floor(share) for share in shares]
        by_fraction = sorted(range(len(shares)), key=lambda i: shares[i] - copies[i], reverse=True)
        for i in by_fraction[: self.n - sum(copies)]:
            copies[i] += 1
        return copies
