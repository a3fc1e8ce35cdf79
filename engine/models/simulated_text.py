"""What the simulated models compute: seeded processes that write and judge solutions.

Like a real model's, the logits after a position are a pure function of the tokens up to it. All
randomness comes from hashes of those tokens. Only exact arithmetic is done on many rows at once,
so a row is the same bits in whatever batch it is computed.
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

END, BEGIN, MARKER, GOOD, BAD, STOP = range(6)
SPECIALS = ("<|end|>", "<|solution|>", "<|step|>", "<|good|>", "<|bad|>")
_TEXT = (
    "so we have the sum of two odd numbers is even then divide both by three and find that "
    "this gives us more than"
)
_WORDS = _TEXT.split()
_ANSWERS = 4
_FIRST_WORD = STOP + 1
_FIRST_ANSWER = _FIRST_WORD + len(_WORDS)
_SIZE = _FIRST_ANSWER + _ANSWERS

_NEVER = np.float32(-60.0)
"""Logit of tokens that cannot come next."""
_MASK = 2**64 - 1


class SimulatedVocabulary:
    """24 words, a delimiter, an end, and the verifier's tokens; implements `Vocabulary`.

    Words that it does not know are read as one of the 24.
    """

    size = _SIZE

    def __init__(self) -> None:
        answers = [rf"\boxed{{{i}}}" for i in range(_ANSWERS)]
        self._pieces = [b""] * STOP + [b".\n\n"]
        self._pieces += [f" {word}".encode() for word in (*_WORDS, *answers)]
        self._ids = {".": STOP}
        self._ids |= {word: id for id, word in enumerate((*_WORDS, *answers), _FIRST_WORD)}
        self._special_ids = {text: id for id, text in enumerate(SPECIALS)}

    def tokenize(self, text: str, *, special: bool = False, bos: bool = False) -> list[int]:
        pattern = r"\\boxed\{\d\}|\w+|\S"
        known = self._ids
        if special:
            pattern = r"<\|\w+\|>|" + pattern
            known = known | self._special_ids
        return [
            known[word] if word in known else _FIRST_WORD + zlib.crc32(word.encode()) % len(_WORDS)
            for word in re.findall(pattern, text)
        ]

    def piece(self, token: int) -> bytes:
        return self._pieces[token]

    def is_end(self, token: int) -> bool:
        return token == END


def lognormal(median: float, sigma: float, points: int = 1024) -> tuple[int, ...]:
    """Step lengths in tokens with a heavy tail, as equally likely points, ascending."""
    normal = NormalDist()
    quantiles = (normal.inv_cdf((i + 0.5) / points) for i in range(points))
    return tuple(max(1, round(median * math.exp(sigma * q))) for q in quantiles)


class Writing(NamedTuple):
    """Where a path of the generator is."""

    hash: int
    """Of all tokens so far."""
    step: int
    """Steps finished."""
    place: int
    """Tokens of the current step so far."""
    last: int
    """Place of the token that ends the step; 0 while its first words leave it open."""
    final: bool
    """Whether the step ends the solution."""


@dataclass(frozen=True)
class Writer:
    """A generator's text: steps of some length, each ended by the delimiter, the last by an end.

    Length and finality of a step are decided by its first `opening` words, which siblings that
    agree so far share. Most positions have one likely word; at a fork, many are possible.
    """

    seed: int = 0
    lengths: Sequence[int] = field(default_factory=lambda: lognormal(45, 0.8))
    """Equally likely lengths of a step in tokens, ascending."""
    opening: int = 4
    """Words of a step that decide how long it becomes; no step is shorter."""
    fewest: int = 4
    """Steps a solution has at least."""
    ending: float = 0.15
    """Chance that any later step is the last."""
    early_forks: float = 0.15
    """Share of positions in the opening where the next word is open."""
    forks: float = 0.008
    """The same later in a step."""
    spread: float = 5.0
    """Width of the logits of the words at such a position."""
    confidence: float = 12.0
    """Logits by which the likely word leads everywhere else."""

    @property
    def start(self) -> Writing:
        return Writing(_mix(self.seed & _MASK), 0, 0, 0, False)

    def after(self, state: Writing, tokens: Sequence[int]) -> Writing:
        """The state after more tokens."""
        hash, step, place, last, final = state
        for token in tokens:
            hash = _append(hash, token)
            if token == BEGIN:
                step = place = last = 0
                final = False
            elif token == STOP:
                step, place, last, final = step + 1, 0, 0, False
            else:
                place += 1
                if place == self.opening:
                    last, final = self._plan(hash, step)
        return Writing(hash, step, place, last, final)

    def _plan(self, hash: int, step: int) -> tuple[int, bool]:
        length = self.lengths[int(_uniform(hash, 1) * len(self.lengths))]
        # A step that ends the solution has room for its answer.
        final = step + 1 >= self.fewest and _uniform(hash, 2) < self.ending
        return max(length - 1, self.opening + final), final

    def logits(self, states: Sequence[Writing]) -> np.ndarray:
        """One row of the vocabulary's size for each state."""
        hashes = np.array([state.hash for state in states], np.uint64)
        noise = _uniforms(hashes, len(_WORDS) + 2)
        rows = np.full((len(states), _SIZE), _NEVER, np.float32)
        rows[:, _FIRST_WORD:_FIRST_ANSWER] = noise[:, 2:] * np.float32(self.spread)
        likely = _FIRST_WORD + (noise[:, 0] * np.float32(len(_WORDS))).astype(np.intp)
        chances = [self.forks if state.last else self.early_forks for state in states]
        open_ = noise[:, 1] < np.array(chances, np.float32)
        lead = np.where(open_, np.float32(0), np.float32(self.confidence))
        rows[np.arange(len(states)), likely] += lead
        for row, state in zip(rows, states, strict=True):
            if state.last and state.place >= state.last - 1:
                self._close(row, state)
        return rows

    def _close(self, row: np.ndarray, state: Writing) -> None:
        """The end of a step; of the last step, the answer before it."""
        if state.place >= state.last:
            row[:] = _NEVER
            row[END if state.final else STOP] = 0.0
        elif state.final:
            row[:] = _NEVER
            row[_FIRST_ANSWER:] = 0.0
            row[_FIRST_ANSWER + _mix(self.seed & _MASK) % _ANSWERS] = 1.0


class Judging(NamedTuple):
    """Where a path of the verifier is."""

    hash: int
    quality: float | None
    """Log-odds of the last step being right; None before the first."""


@dataclass(frozen=True)
class Judge:
    """A verifier's scores: log-odds that drift from step to step and so persist along a path."""

    seed: int = 0
    mean: float = 1.0
    spread: float = 1.5
    """Standard deviation of the log-odds."""
    persistence: float = 0.8
    """Correlation of a step's log-odds with its parent's."""

    @property
    def start(self) -> Judging:
        return Judging(_mix(~self.seed & _MASK), None)

    def after(self, state: Judging, tokens: Sequence[int]) -> Judging:
        """The state after more tokens."""
        hash, quality = state
        for token in tokens:
            hash = _append(hash, token)
            if token == MARKER:
                quality = self._drift(hash, quality)
        return Judging(hash, quality)

    def _drift(self, hash: int, quality: float | None) -> float:
        chance = self.spread * NormalDist().inv_cdf(max(_uniform(hash, 1), 1e-12))
        if quality is None:
            return self.mean + chance
        kept = self.persistence * (quality - self.mean)
        return self.mean + kept + math.sqrt(1 - self.persistence**2) * chance

    def logits(self, states: Sequence[Judging]) -> np.ndarray:
        """One row of the vocabulary's size for each state."""
        rows = np.full((len(states), _SIZE), _NEVER, np.float32)
        rows[:, GOOD] = [(state.quality or 0.0) / 2 for state in states]
        rows[:, BAD] = -rows[:, GOOD]
        return rows


def _append(hash: int, token: int) -> int:
    hash = (hash ^ (token + 1)) * 0x9E3779B97F4A7C15 & _MASK
    return hash ^ hash >> 29


def _mix(value: int) -> int:
    """A well-mixed hash (the finalizer of SplitMix64)."""
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    value = (value ^ value >> 27) * 0x94D049BB133111EB & _MASK
    return value ^ value >> 31


def _uniform(hash: int, salt: int) -> float:
    """A number in [0, 1) that belongs to a hash."""
    return (_mix(hash + salt * 0xD1B54A32D192ED03 & _MASK) >> 11) * 2.0**-53


def _uniforms(hashes: np.ndarray, count: int) -> np.ndarray:
    """`count` float32 numbers in [0, 1) for each hash, shape (hashes, count)."""
    salts = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0xD1B54A32D192ED03)
    values = hashes[:, None] + salts
    values = (values ^ values >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ values >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return (values >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24)
