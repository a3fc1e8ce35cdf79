"""What becomes of drafts: which of their tokens stand, and what follows where one does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from engine.models.sampling import Sampler
from engine.semantic.acceptance import Acceptance
from engine.semantic.features import Feature, feature

Distribution = tuple[np.ndarray, np.ndarray]
"""Token ids, ascending, and their probabilities."""
Predict = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, slots=True)
class ByTokens:
    """Speculative decoding: tokens stand so that what is written has the target's distribution.

    A drafted token stands with probability min(1, p/q). Where one does not, another is drawn from
    what the target's distribution has more of than the draft's (Leviathan et al., 2023).
    """

    length: int = 4
    """Tokens that are drafted before the target reads them."""


@dataclass(frozen=True, slots=True)
class ByMeaning:
    """Semantic acceptance of whole steps."""

    feature: Feature
    draft: Predict
    target: Predict
    acceptance: Acceptance = field(default_factory=Acceptance)

    def chances(self, drafts: np.ndarray, targets: np.ndarray) -> list[float]:
        """The probability that each of some drafted steps is accepted.

        Args:
            drafts: mean states of the draft model, shape (steps, layers, width).
            targets: the same of the target.
        """
        q = self.draft(feature(self.feature, drafts))
        p = self.target(feature(self.feature, targets))
        return [self.acceptance.probability(float(a), float(b)) for a, b in zip(p, q, strict=True)]


Judging = ByTokens | ByMeaning


def distribution(sampler: Sampler, logits: np.ndarray) -> Distribution:
    """What a sampler draws from."""
    ids, weights = sampler.weights(logits)
    shares = weights.astype(np.float64)
    return ids.copy(), shares / shares.sum()


def token_chance(target: Distribution, draft: Distribution, token: int) -> float:
    """The probability that a token drawn from `draft` stands."""
    return min(1.0, _share(target, token) / max(_share(draft, token), 1e-300))


def instead(target: Distribution, draft: Distribution, uniform: float) -> int:
    """A token in the place of one that does not stand.

    Args:
        uniform: in [0, 1).
    """
    ids, shares = target
    _, mine, theirs = np.intersect1d(ids, draft[0], assume_unique=True, return_indices=True)
    more = shares.copy()
    more[mine] -= draft[1][theirs]
    running = np.cumsum(np.maximum(more, 0.0))
    if running[-1] <= 0.0:  # both are the same but for rounding
        running = np.cumsum(shares)
    place = int(np.searchsorted(running, uniform * running[-1], side="right"))
    return int(ids[min(place, len(ids) - 1)])


def _share(distribution: Distribution, token: int) -> float:
    ids, shares = distribution
    place = int(np.searchsorted(ids, token))
    return float(shares[place]) if place < len(ids) and ids[place] == token else 0.0
