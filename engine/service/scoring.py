"""Scoring a solution that is there already, without a search."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import cast

import msgspec

from engine.errors import EngineError
from engine.models.stop import StopSignal
from engine.protocol import AnyEvent, Event, RunFailed, RunFinished, ScoreRequest, Trouble


class Scoring:
    """One solution being scored, and where its events go.

    Attributes:
        stop: set once it is cancelled.
        finished: whether the last event was emitted.
        beat: to be called with every sign of progress; each `emit` does so too.
    """

    def __init__(
        self,
        request: ScoreRequest,
        send: Callable[[AnyEvent], None],
        stop: StopSignal,
        beat: Callable[[], None],
    ) -> None:
        self.request = request
        self.stop = stop
        self.beat = beat
        self.finished = False
        self._send = send
        self._seq = 0
        self._begin = time.monotonic()

    @property
    def events(self) -> int:
        """Events told so far."""
        return self._seq

    @property
    def seconds(self) -> float:
        """How long it has been going on."""
        return time.monotonic() - self._begin

    def emit(self, event: Event) -> None:
        """Send an event to the client."""
        self.beat()
        at = round(self.seconds, 6)
        self._send(cast(AnyEvent, msgspec.structs.replace(event, seq=self._seq, at=at)))
        self._seq += 1
        self.finished = isinstance(event, RunFinished | RunFailed)

    def check(self) -> None:
        """Refuse what has nothing to be scored.

        Raises:
            EngineError: the problem or the solution is empty.
        """
        if not self.request.problem.strip():
            raise EngineError(Trouble.USAGE, "The problem is empty.", "Give the text of a problem.")
        if not self.request.steps or not all(step.strip() for step in self.request.steps):
            raise EngineError(
                Trouble.USAGE, "The solution has an empty step.", "Give the text of each step."
            )
