"""Copies of evicted paths in the host's memory, where bringing them back beats computing them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from engine.models.base import Saved, TokenModel

K = TypeVar("K")


class HostCopies(Generic[K]):
    """Keeps the ends of paths, the most recent of them, up to a number of bytes.

    Whether a copy is worth making is measured: twice the seconds a token has taken to move,
    against the seconds it took to compute.

    Args:
        limit: bytes of host memory.
    """

    def __init__(
        self, model: TokenModel, limit: int, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._model = model
        self._limit = limit
        self._clock = clock
        self._copies: dict[K, Saved] = {}
        self._starts: dict[K, int] = {}
        self._bytes = 0
        self._moving = (0.0, 0)
        self._computing = (0.0, 0)

    def start(self, key: K) -> int | None:
        """Where in its path a copy starts; None if there is none."""
        return self._starts[key] if key in self._copies else None

    def length(self, key: K) -> int:
        """Tokens of a copy; none if there is none."""
        return self._copies[key].length if key in self._copies else 0

    def kept(self) -> list[K]:
        return list(self._copies)

    def computed(self, tokens: int, seconds: float) -> None:
        """Computing so many tokens at once took so long."""
        self._computing = (self._computing[0] + seconds, self._computing[1] + tokens)

    def keep(self, key: K, path: int, start: int) -> None:
        """Copy a path from position `start` on, if that pays."""
        if self._model.length(path) <= start or not self._pays():
            return
        begin = self._clock()
        saved = self._model.save(path, start)
        self._moved(saved, begin)
        self.forget(key)
        while self._copies and self._bytes + saved.bytes > self._limit:
            self.forget(next(iter(self._copies)))
        if saved.bytes <= self._limit:
            self._copies[key] = saved
            self._starts[key] = start
            self._bytes += saved.bytes

    def bring_back(self, key: K, path: int) -> int:
        """Append a copy to a path that ends where it starts; returns its tokens."""
        saved = self._copies[key]
        begin = self._clock()
        self._model.restore(path, saved)
        self._moved(saved, begin)
        return saved.length

    def forget(self, key: K) -> None:
        saved = self._copies.pop(key, None)
        if saved is not None:
            del self._starts[key]
            self._bytes -= saved.bytes

    def _moved(self, saved: Saved, begin: float) -> None:
        seconds, tokens = self._moving
        self._moving = (seconds + self._clock() - begin, tokens + saved.length)

    def _pays(self) -> bool:
        (moving, moved), (computing, computed) = self._moving, self._computing
        return not moved or not computed or 2 * moving / moved < computing / computed
