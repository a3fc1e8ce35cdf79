"""How long prefill and decode take at least, and the split of a cache that follows from it.

FastTTS (section 4): time is the larger of operations over peak rate and bytes over bandwidth; the
cache is split between verifier and generator so that the sum of both over all paths is smallest.
To that comes what FastTTS leaves out: survivors that the cache does not hold are read again in
every round. The times are for paths of full length at the rates of data sheets, good for comparing
plans and no promise.
"""

from __future__ import annotations

from collections.abc import Sequence
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
    """Paths to be written and verified, each up to `length` tokens."""

    paths: int
    length: int
    survivors: int = 0
    """Paths that the others branch off from in each round."""
    rounds: int = 0
    """Times that survivors are gone on from; 0 counts nothing that is read again, as FastTTS
    does."""

    def writing(self, load: Load, speed: Speed, at_once: int) -> float:
        groups = -(-self.paths // at_once)
        once = groups * self.length * load.decode(speed, at_once, self.length / 2)
        return once + self._again(load, speed, at_once)

    def verifying(self, load: Load, speed: Speed, at_once: int) -> float:
        groups = -(-self.paths // at_once)
        once = groups * load.prefill(speed, at_once, self.length)
        return once + self._again(load, speed, at_once)

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


def split(
    work: Work, generator: Load, verifier: Load, speed: Speed, room: int, path: tuple[int, int]
) -> Split | None:
    """The fastest split of `room` bytes.

    For each number of paths verified at once, the generator takes all that is left. Of equally
    fast splits, that which writes most paths at once is taken, then that which verifies most:
    memory that nobody needs keeps more of the verifier's cache from being computed again.

    Args:
        path: bytes that a path takes in the generator's cache and in the verifier's.

    Returns:
        None if there is no room for one path in each.
    """
    written, verified = path
    found = []
    for count in range(1, work.paths + 1):
        rest = min(work.paths, (room - count * verified) // written)
        if rest < 1:
            break
        seconds = work.verifying(verifier, speed, count) + work.writing(generator, speed, rest)
        found.append(Split(count, rest, seconds))
    return best(found) if found else None


def best(found: Sequence[Split]) -> Split:
    """The fastest; of equally fast ones, that which writes most at once, then verifies most."""
    limit = min(one.seconds for one in found) * (1 + _TIE)
    equal = (one for one in found if one.seconds <= limit)
    return max(equal, key=lambda one: (one.written, one.verified))
