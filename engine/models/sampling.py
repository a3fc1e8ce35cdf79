"""Drawing tokens: which token, and the randomness it is drawn with.

The draw for token `i` of a node is a pure function of (seed, lineage, i): nothing else, not the
order of a batch, not time, not which other paths exist, feeds it.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from engine.errors import EngineError
from engine.protocol.events import Trouble

_NEGLIGIBLE = 24.0
"""Tokens this many nats below the best (1 in 26 billion) are never drawn; leaving them out saves
most of the exponentials on a large vocabulary."""


_SPARSE = 8
"""Tokens of the vocabulary for each that is possible, from which on those are picked out."""
_BLOCK = 256
"""Weights that are summed at once."""


class Draws:
    """The stream of uniform numbers that belongs to one node."""

    __slots__ = ("_key",)

    def __init__(self, seed: int, lineage: Iterable[int]) -> None:
        name = ",".join(map(str, (seed, *lineage)))
        self._key = hashlib.blake2b(name.encode(), digest_size=16).digest()

    def uniform(self, index: int) -> float:
        """The number for token `index`, in [0, 1)."""
        digest = hashlib.blake2b(struct.pack("<Q", index), digest_size=8, key=self._key).digest()
        return (int.from_bytes(digest, "little") >> 11) * 2.0**-53


@dataclass(frozen=True, slots=True)
class Sampler:
    """Temperature, then top-k, top-p and min-p, in that order.

    A temperature of 0 takes the likeliest token (the lowest id on ties).
    """

    temperature: float = 0.8
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0

    def weights(self, logits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Token ids that can be drawn, ascending, and their weights, float32, unnormalised.

        Both are valid until the next call.

        Args:
            logits: float32, shape (vocabulary,).

        Raises:
            EngineError: they are not numbers.
        """
        best = logits.max()
        if not np.isfinite(best):
            raise EngineError(
                Trouble.MODEL,
                "The model computes no numbers: its file is damaged.",
                "Download it again.",
            )
        temperature = np.float32(self.temperature)
        if temperature <= 0:
            return np.array([logits.argmax()]), np.ones(1, np.float32)
        possible = logits >= best - _NEGLIGIBLE * temperature
        # Where much is possible, computing with all is cheaper than picking out what is.
        if np.count_nonzero(possible) * _SPARSE < len(logits):
            ids = np.flatnonzero(possible)
            scaled = (logits[ids] - best) / temperature
        else:
            ids, scaled = _scratch(len(logits))
            np.subtract(logits, best, out=scaled)
            np.divide(scaled, temperature, out=scaled)
        if 0 < self.top_k < len(ids):
            keep = _largest(scaled, self.top_k)
            ids, scaled = ids[keep], scaled[keep]
        weights = np.exp(scaled, out=scaled)
        if self.top_p < 1.0:
            keep = _nucleus(weights, self.top_p)
            ids, weights = ids[keep], weights[keep]
        if self.min_p > 0.0:
            keep = weights >= self.min_p  # the best weighs 1
            ids, weights = ids[keep], weights[keep]
        return ids, weights

    def draw(self, logits: np.ndarray, uniforms: Iterable[float]) -> list[int]:
        """Draw one token for each uniform number from the same logits."""
        ids, weights = self.weights(logits)
        # Running sums over a large vocabulary are slow: sum blocks first, then within the one that
        # is drawn.
        starts = np.arange(0, len(weights), _BLOCK)
        running = np.cumsum(np.add.reduceat(weights, starts, dtype=np.float64))
        drawn: list[int] = []
        for uniform in uniforms:
            target = uniform * running[-1]
            block = min(int(np.searchsorted(running, target, side="right")), len(starts) - 1)
            start = int(starts[block])
            inside = weights[start : start + _BLOCK]
            within = np.cumsum(inside, dtype=np.float64)
            target -= running[block - 1] if block else 0.0
            place = int(np.searchsorted(within, target, side="right"))
            if place == len(within):  # the two sums round differently
                place = int(inside.argmax())
            drawn.append(int(ids[start + place]))
        return drawn


@lru_cache(maxsize=4)
def _scratch(size: int) -> tuple[np.ndarray, np.ndarray]:
    """All ids, and room for a number each: the pages of new arrays would cost more than the sums
    in them."""
    return np.arange(size), np.empty(size, np.float32)


def _largest(values: np.ndarray, count: int) -> np.ndarray:
    """Places of the `count` largest values, ascending; of equal ones the first."""
    least = np.partition(values, -count)[-count]
    above = np.flatnonzero(values > least)
    level = np.flatnonzero(values == least)[: count - len(above)]
    return np.sort(np.concatenate((above, level)))


def _nucleus(weights: np.ndarray, share: float) -> np.ndarray:
    """Places of the fewest, largest weights that make up `share` of all, ascending."""
    wanted = share * weights.sum(dtype=np.float64)
    count = 64
    while True:  # sorting everything would cost more than all the rest
        count = min(8 * count, len(weights))
        places = _largest(weights, count)
        order = places[np.argsort(-weights[places], kind="stable")]
        running = np.cumsum(weights[order], dtype=np.float64)
        if running[-1] >= wanted or count == len(weights):
            return np.sort(order[: int(np.searchsorted(running, wanted)) + 1])
