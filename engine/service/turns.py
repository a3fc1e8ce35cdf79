"""Two models that take turns: while one works, the other makes room."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from engine.models.base import Saved, Span, TokenModel, Vocabulary


class Sleeper(TokenModel, Protocol):
    """A token model that can make room and come back as it was."""

    @property
    def awake(self) -> bool: ...

    def sleep(self, *, weights: bool, save: bool) -> None:
        """Free the cache's memory, and that of the weights if `weights`.

        Args:
            save: keep a copy of the cells in use in RAM. Otherwise they are computed again.
        """
        ...

    def wake(self) -> None:
        """Be as before `sleep`."""
        ...


@dataclass(slots=True)
class _Moves:
    """How often a model has left or come back, and what that took."""

    count: int = 0
    seconds: float = 0.0

    def make(self, move: Callable[[], None]) -> None:
        start = time.perf_counter()
        move()
        self.count += 1
        self.seconds += time.perf_counter() - start


class Turns:
    """Sees to it that at most one of its models is awake.

    Args:
        weights: whether the weights of the one that waits leave too, and not its cache alone.
        save: whether its cache is kept in RAM; otherwise it is computed again.
    """

    def __init__(self, *, weights: bool, save: bool) -> None:
        self._weights = weights
        self._save = save
        self._models: list[Sleeper] = []
        self._left: dict[int, _Moves] = {}
        self._back: dict[int, _Moves] = {}
        self.changes = 0
        """How often the turn has changed."""
        self.seconds = 0.0
        """What that took."""

    def add(self, model: Sleeper) -> InTurn:
        """Have `model` take part; it is the one awake from now on."""
        self.clear_for(model)
        self._models.append(model)
        self._left[id(model)], self._back[id(model)] = _Moves(), _Moves()
        return InTurn(self, model)

    def clear_for(self, model: Sleeper | None = None) -> None:
        """Send all others away."""
        for other in self._models:
            if other is not model:
                self._send_away(other)

    def give(self, model: Sleeper) -> None:
        """Make it the turn of `model`.

        Raises:
            Interrupted: its stop signal was set meanwhile.
            EngineError: there is no memory for it.
        """
        if model.awake:
            return
        start = time.perf_counter()
        for other in self._models:
            if other is not model and other.awake:
                self._left[id(other)].make(partial(self._send_away, other))
        self._back[id(model)].make(model.wake)
        self.changes += 1
        self.seconds += time.perf_counter() - start

    def there_and_back(self, model: Sleeper) -> float | None:
        """Seconds that leaving and coming back took the model in the mean; None where it has not
        done both."""
        moves = (self._left[id(model)], self._back[id(model)])
        if not all(one.count for one in moves):
            return None
        return sum(one.seconds / one.count for one in moves)

    def _send_away(self, model: Sleeper) -> None:
        model.sleep(weights=self._weights, save=self._save)


class InTurn:
    """A model that works when it is its turn, and can be asked and told all else at any time."""

    def __init__(self, turns: Turns, model: Sleeper) -> None:
        self._turns = turns
        self._model = model
        self.name = model.name
        self.trained_context = model.trained_context
        self.capacity = model.capacity
        self.max_paths = model.max_paths

    @property
    def vocabulary(self) -> Vocabulary:
        return self._model.vocabulary

    @property
    def used(self) -> int:
        return self._model.used

    def length(self, path: int) -> int:
        return self._model.length(path)

    def fork(self, source: int, target: int) -> None:
        self._model.fork(source, target)

    def drop(self, path: int) -> None:
        self._model.drop(path)

    def save(self, path: int, start: int) -> Saved:
        self._turns.give(self._model)
        return self._model.save(path, start)

    def restore(self, path: int, saved: Any) -> None:
        self._turns.give(self._model)
        self._model.restore(path, saved)

    def reset(self) -> None:
        self._model.reset()

    def forward(self, spans: Sequence[Span], columns: Sequence[int] | None = None) -> np.ndarray:
        self._turns.give(self._model)
        return self._model.forward(spans, columns)

    def hidden(self, spans: Sequence[Span]) -> np.ndarray:
        self._turns.give(self._model)
        return self._model.hidden(spans)
