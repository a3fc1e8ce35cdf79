"""A token model without a network: a seeded process, exact bookkeeping, a virtual clock.

The scheduler and the verifier run on it as on a real one, only faster and on any GPU's time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from engine.errors import EngineError
from engine.models.base import Span, Vocabulary
from engine.models.cells import CellCount
from engine.models.simulated_clock import Timing
from engine.models.simulated_text import SimulatedVocabulary
from engine.protocol.events import Trouble

S = TypeVar("S")


class Process(Protocol[S]):
    """Logits as a pure function of a path's tokens, by way of a small state."""

    @property
    def start(self) -> S:
        """The state of an empty path."""
        ...

    def after(self, state: S, tokens: Sequence[int]) -> S:
        """The state when `tokens` follow."""
        ...

    def logits(self, states: Sequence[S]) -> np.ndarray:
        """float32, one row of the vocabulary's size for each state."""
        ...


@dataclass(frozen=True, slots=True)
class SavedState:
    """A path's end in the host's memory."""

    tokens: list[int]
    bytes: int
    state: Any

    @property
    def length(self) -> int:
        return len(self.tokens)


class SimulatedModel:
    """Implements `TokenModel`. Misuse that a real cache would suffer silently is an error.

    Args:
        timing: what a forward pass costs; by default nothing.
        vocabulary: of the process; by default that of generated text.
    """

    def __init__(
        self,
        process: Process[Any],
        *,
        capacity: int,
        paths: int,
        timing: Timing | None = None,
        vocabulary: Vocabulary | None = None,
        name: str = "simulated",
    ) -> None:
        self.name = name
        self.vocabulary: Vocabulary = vocabulary or SimulatedVocabulary()
        self.trained_context = capacity
        self.capacity = capacity
        self.max_paths = paths
        self._process = process
        self._start = process.start
        self._timing = timing
        self.reset()

    @property
    def used(self) -> int:
        return self._cells.used

    def length(self, path: int) -> int:
        return self._cells.length(path)

    def fork(self, source: int, target: int) -> None:
        self._check(source, target)
        if self.length(target):
            raise ValueError(f"path {target} is not free")
        self._cells.fork(source, target)
        if source in self._states:
            self._states[target] = self._states[source]

    def drop(self, path: int) -> None:
        self._check(path)
        self._cells.drop(path)
        self._states.pop(path, None)

    def save(self, path: int, start: int) -> SavedState:
        self._check(path)
        tokens = self._cells.tail(path, start)
        cell = self._timing.shape.cell_bytes if self._timing is not None else 1
        saved = SavedState(tokens, len(tokens) * cell, self._states[path])
        self._transfer(saved.bytes)
        return saved

    def restore(self, path: int, saved: SavedState) -> None:
        self._check(path)
        self._cells.append((path,), saved.tokens)
        if self.used > self.capacity:
            raise ValueError(f"{self.used} cells do not fit into {self.capacity}")
        self._states[path] = saved.state
        self._transfer(saved.bytes)

    def _transfer(self, bytes: int) -> None:
        if self._timing is not None:
            self._timing.transfer(bytes)

    def reset(self) -> None:
        self._cells = CellCount()
        self._states: dict[int, Any] = {}

    def forward(self, spans: Sequence[Span], columns: Sequence[int] | None = None) -> np.ndarray:
        wanted: list[Any] = []
        sizes: list[tuple[int, int]] = []
        for span in spans:
            wanted += self._append(span)
            sizes.append((len(span.tokens), self.length(span.paths[0])))
        if self.used > self.capacity:
            raise ValueError(f"{self.used} cells do not fit into {self.capacity}")
        if self._timing is not None:
            self._timing.charge(sizes, len(wanted), self.used)
        rows = self._process.logits(wanted)
        return rows if columns is None else rows[:, columns]

    def hidden(self, spans: Sequence[Span]) -> np.ndarray:
        raise EngineError(Trouble.MODEL, "A simulated model has no hidden states.")

    def _append(self, span: Span) -> list[Any]:
        """Append a span; returns the states at its wanted positions."""
        self._check(*span.paths)
        state = self._states.get(span.paths[0], self._start)
        if any(self._states.get(path, self._start) != state for path in span.paths[1:]):
            raise ValueError("the paths of a span differ")
        count = len(span.tokens)
        states: list[Any] = []
        done = 0
        for index in span.wanted:
            end = (index if index >= 0 else count + index) + 1
            if not done < end <= count:
                raise ValueError("wanted positions must ascend within the span")
            state = self._process.after(state, span.tokens[done:end])
            states.append(state)
            done = end
        state = self._process.after(state, span.tokens[done:])
        self._cells.append(span.paths, span.tokens)
        for path in span.paths:
            self._states[path] = state
        return states

    def _check(self, *paths: int) -> None:
        for path in paths:
            if not 0 <= path < self.max_paths:
                raise ValueError(f"there is no path {path}")
