"""How long prefill and decode take at least, and what that makes of a search.

After FastTTS (section 4): time is the larger of operations over peak rate and bytes over bandwidth.
To that comes what FastTTS leaves out: paths share their beginnings, and survivors that a cache does
not hold are read again in every round. The times are for paths of full length at the rates of data
sheets, good for comparing plans and no promise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

_TIE = 1e-6
"""Relative difference of times up to which they are equal."""


@dataclass(frozen=True, slots=True)
class Speed:
    """Of a processor and its memory."""

    bandwidth: float
    """Bytes a second."""
    flops: float
    """Operations a second."""

    def seconds(self, operations: float, data: float) -> float:
        return max(operations / self.flops, data / self.bandwidth)


@dataclass(frozen=True, slots=True)
class Load:
    """What a model reads and computes for a token."""

    weights: int
    """Bytes read in every pass."""
    cell: int
    """Cached bytes of one token."""
    parameters: int
    attention: int
    """Operations for each token that is looked back at."""
    rows: int = 512
    """Tokens of a prefill for which the weights are read once."""

    def prefill(self, speed: Speed, paths: int, length: int) -> float:
        """Seconds to read `paths` sequences of `length` tokens."""
        tokens = paths * length
        operations = tokens * (2 * self.parameters + self.attention * length / 2)
        passes = -(-tokens // self.rows)
        return speed.seconds(operations, passes * self.weights + tokens * self.cell)

    def decode(self, speed: Speed, paths: int, length: float) -> float:
        """Seconds to write one more token on each of `paths` sequences of `length` tokens."""
        operations = paths * (2 * self.parameters + self.attention * length)
        return speed.seconds(operations, self.weights + paths * length * self.cell)


@dataclass(frozen=True, slots=True)
class Work:
    """Paths to be written and verified, each up to `length` tokens, as a search does it: in rounds,
    in each of which all paths branch off from a few."""

    paths: int
    length: int
    survivors: int
    """Paths that the others branch off from."""
    rounds: int

    @property
    def held(self) -> float:
        """Paths of full length whose cells a search needs in the mean: survivors that are half
        written, and a step of every path."""
        return self.survivors / 2 + self.paths / self.rounds

    def writing(self, load: Load, speed: Speed, at_once: int) -> float:
        """Seconds, with a cache for so many paths of full length."""
        together = self.paths if at_once >= self.held else at_once

        def group(paths: int) -> float:
            return self.length * load.decode(speed, paths, self.length / 2)

        return self._in_groups(together, group) + self._again(load, speed, at_once)

    def verifying(self, load: Load, speed: Speed, at_once: int) -> float:
        """Seconds, with a cache for so many paths of full length."""

        def group(paths: int) -> float:
            return load.prefill(speed, paths, self.length)

        return self._in_groups(at_once, group) + self._again(load, speed, at_once)

    def _in_groups(self, size: int, seconds: Callable[[int], float]) -> float:
        groups, rest = divmod(self.paths, size)
        return groups * seconds(size) + (seconds(rest) if rest else 0.0)

    def _again(self, load: Load, speed: Speed, at_once: int) -> float:
        """Seconds to read what had to leave the cache: each round, the survivors that are too many
        for it, of half their length in the mean."""
        lost = max(0, self.survivors - at_once)
        return self.rounds * load.prefill(speed, lost, self.length // 2)


@dataclass(frozen=True, slots=True)
class Split:
    """Paths that each cache holds at once."""

    verified: int
    written: int
    seconds: float


def best(found: Sequence[Split]) -> Split:
    """The fastest; of equally fast ones, that which writes most at once, then verifies most."""
    limit = min(one.seconds for one in found) * (1 + _TIE)
    equal = (one for one in found if one.seconds <= limit)
    return max(equal, key=lambda one: (one.written, one.verified))
