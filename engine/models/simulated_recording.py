"""A recorded run as what simulated models compute: they write and judge that run's tree again.

The log holds every token and score, so the searches of a real backend can be scheduled again on
any device's time. Token ids, texts and lengths are kept apart from words: each recorded id becomes
one word. What the log does not hold, because the recorded search never went there, is written as
its first steps were and judged as the step before.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np

from engine.models.sampling import Draws
from engine.models.simulated_text import BAD, BEGIN, GOOD, MARKER, SPECIALS

Lineage = tuple[int, ...]
Ending = Literal["step", "end", "length", "context"]

_OTHER = len(SPECIALS)
"""Id of all words that the recording does not have: those of the problem."""
_FIRST = _OTHER + 1
_NEVER = np.float32(-60.0)
_SURE = 1e-9
"""How far from 0 and 1 a score is kept, for its log-odds to be finite."""


class Step(NamedTuple):
    """A node as it was recorded."""

    tokens: Sequence[int]
    ending: Ending
    score: float | None


class RecordedVocabulary:
    """A word for each recorded token and for what it ends; implements `Vocabulary`."""

    def __init__(self, steps: Mapping[Lineage, Step]) -> None:
        kinds: set[tuple[int, str]] = set()
        for step in steps.values():
            kinds.update((token, "") for token in step.tokens[:-1])
            kinds.add((step.tokens[-1], _closing(step)))
        # In the order of the recorded ids, since that is the order in which tokens are drawn.
        self._ids = {kind: id for id, kind in enumerate(sorted(kinds), _FIRST)}
        self._ends = {id for (_, closing), id in self._ids.items() if closing == "end"}
        delimiters = {"": "", "step": "\n\n", "end": ""}
        self._pieces = [b""] * _FIRST
        self._pieces += [f" w{id}{delimiters[kind[1]]}".encode() for kind, id in self._ids.items()]
        self._special_ids = {text: id for id, text in enumerate(SPECIALS)}
        self.size = _FIRST + len(self._ids)

    def translate(self, step: Step) -> list[int]:
        """Ids of a step's tokens here."""
        *before, last = step.tokens
        ids = self._ids
        return [*(ids[token, ""] for token in before), ids[last, _closing(step)]]

    def tokenize(self, text: str, *, special: bool = False, bos: bool = False) -> list[int]:
        parts = re.findall(r"<\|\w+\|>|\w+|\S" if special else r"\w+|\S", text)
        return [self._id(part) for part in parts]

    def _id(self, part: str) -> int:
        if part in self._special_ids:
            return self._special_ids[part]
        number = part[1:]
        known = part[0] == "w" and number.isdecimal() and _FIRST <= int(number) < self.size
        return int(number) if known else _OTHER

    def piece(self, token: int) -> bytes:
        return b"" if token in self._ends else self._pieces[token]

    def is_end(self, token: int) -> bool:
        return token in self._ends


def _closing(step: Step) -> str:
    return step.ending if step.ending in ("step", "end") else ""


class RecordedWriter:
    """The generator of a recorded run. A state is a place in the tree of its texts."""

    def __init__(
        self, steps: Mapping[Lineage, Step], vocabulary: RecordedVocabulary, seed: int
    ) -> None:
        """Draw at a temperature of 1.

        Raises:
            ValueError: the steps were not drawn with this seed.
        """
        self.start = 0
        self._size = vocabulary.size
        self._next: dict[tuple[int, int], int] = {}
        drawn: dict[int, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
        ends: dict[Lineage, int] = {(): 0}
        for lineage in sorted(steps, key=len):
            place = ends.get(lineage[:-1])
            if place is None:
                continue
            draws = Draws(seed, lineage)
            for index, token in enumerate(vocabulary.translate(steps[lineage])):
                drawn[place][token].append(draws.uniform(index))
                place = self._next.setdefault((place, token), len(self._next) + 1)
            ends[lineage] = place
        self._chances = {place: _chances(tokens) for place, tokens in drawn.items()}

    def after(self, state: int, tokens: Sequence[int]) -> int:
        for token in tokens:
            if token == BEGIN:
                state = 0
            else:
                state = self._next.get((state, token)) or self._next.get((0, token), 0)
        return state

    def logits(self, states: Sequence[int]) -> np.ndarray:
        rows = np.full((len(states), self._size), _NEVER, np.float32)
        for row, state in zip(rows, states, strict=True):
            tokens, logits = self._chances.get(state) or self._chances[0]
            row[tokens] = logits
        return rows


def _chances(drawn: Mapping[int, Sequence[float]]) -> tuple[list[int], np.ndarray]:
    """Tokens and logits of which every number draws the token that it drew."""
    tokens = sorted(drawn)
    borders = [0.0]
    for token, following in pairwise(tokens):
        low, high = max(drawn[token]), min(drawn[following])
        if low >= high:
            raise ValueError("its tokens were not drawn with its seed")
        borders.append((low + high) / 2)
    return tokens, np.log(np.diff([*borders, 1.0])).astype(np.float32)


class Judging(NamedTuple):
    """Where a path of the verifier is."""

    hash: int
    """Of all recorded words so far."""
    quality: float


class RecordedJudge:
    """The verifier of a recorded run."""

    start = Judging(0, 0.0)

    def __init__(self, steps: Mapping[Lineage, Step], vocabulary: RecordedVocabulary) -> None:
        self._size = vocabulary.size
        self._known: dict[int, float] = {}
        hashes: dict[Lineage, int] = {(): 0}
        for lineage in sorted(steps, key=len):
            before = hashes.get(lineage[:-1])
            if before is None:
                continue
            read = (id for id in vocabulary.translate(steps[lineage]) if not vocabulary.is_end(id))
            hashes[lineage] = reached = _read(before, read)
            score = steps[lineage].score
            if score is not None:
                score = min(max(score, _SURE), 1 - _SURE)
                self._known[reached] = math.log(score / (1 - score))

    def after(self, state: Judging, tokens: Sequence[int]) -> Judging:
        hash, quality = state
        for token in tokens:
            if token >= _FIRST:
                hash = _read(hash, (token,))
            elif token == MARKER:
                quality = self._known.get(hash, quality)
        return Judging(hash, quality)

    def logits(self, states: Sequence[Judging]) -> np.ndarray:
        rows = np.full((len(states), self._size), _NEVER, np.float32)
        rows[:, GOOD] = [state.quality / 2 for state in states]
        rows[:, BAD] = -rows[:, GOOD]
        return rows


def _read(hash: int, tokens: Iterable[int]) -> int:
    for token in tokens:
        hash = (hash * 0x100000001B3 ^ token) & 2**61 - 1
    return hash
