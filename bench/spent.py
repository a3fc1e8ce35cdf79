"""Where processor time goes, by the functions it is spent in."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

Timed = tuple[object, str, str]
"""What has a function, the function's name, and the part of the work that it is."""


class Spent:
    """Seconds of this thread by part, each without the parts called from it.

    Attributes:
        seconds: by the parts that were entered one from within the other, the outermost first.
    """

    def __init__(self) -> None:
        self.seconds: defaultdict[tuple[str, ...], float] = defaultdict(float)
        self._at: tuple[str, ...] = ()
        self._since = time.thread_time()

    def of(self, part: str) -> float:
        """Seconds of a part, wherever it was called from."""
        return sum(seconds for at, seconds in self.seconds.items() if at[-1:] == (part,))

    @contextmanager
    def within(self, part: str) -> Iterator[None]:
        """What happens now belongs to `part`, unless it is timed as another."""
        before = self._at
        self._turn((*before, part))
        try:
            yield
        finally:
            self._turn(before)

    @contextmanager
    def watching(self, functions: Sequence[Timed]) -> Iterator[None]:
        """Have functions timed."""
        with ExitStack() as stack:
            for owner, name, part in functions:
                stack.enter_context(patch.object(owner, name, self._timed(owner, name, part)))
            yield

    def _timed(self, owner: object, name: str, part: str) -> Any:
        function = getattr(owner, name)

        def timed(*args: Any, **kwargs: Any) -> Any:
            before = self._at
            self._turn((*before, part))
            try:
                return function(*args, **kwargs)
            finally:
                self._turn(before)

        return timed

    def _turn(self, at: tuple[str, ...]) -> None:
        now = time.thread_time()
        self.seconds[self._at] += now - self._since
        self._at, self._since = at, now
