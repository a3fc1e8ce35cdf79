"""A run that a client waits for."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod

import msgspec

from engine.client.unsaved import new_log, remove_log
from engine.protocol import (
    AnyEvent,
    Counters,
    RunFailed,
    RunFinished,
    RunStarted,
    Score,
    ScoreRequest,
    Solve,
    SolveRequest,
    Stop,
    Trouble,
)


class Pending(ABC):
    """One run, over all the workers that it may need.

    Attributes:
        events: what the consumer has not taken yet.
        cancelled: whether somebody asked for its end.
        handed_out: whether a worker has it.
        losses: how many workers were lost while they had nothing else to do.
        ended: whether its last event is in `events`.
    """

    def __init__(self, id: str) -> None:
        self.id = id
        self.events: asyncio.Queue[AnyEvent] = asyncio.Queue()
        self.cancelled = False
        self.handed_out = False
        self.losses = 0
        self.ended = False
        self._cause = ""
        self._next_seq = 0
        self._at = 0.0

    @property
    def log(self) -> str | None:
        """Where its log is."""
        return None

    @property
    def begun(self) -> bool:
        """Whether a worker has taken it up."""
        return self._next_seq > 0

    @abstractmethod
    def order(self) -> Solve | Score:
        """The message that makes a worker start the run, or go on with it after a loss."""

    def lost(self, cause: str) -> None:
        """Its worker was lost and it shall go on with another."""
        self._cause = cause

    def deliver(self, event: AnyEvent, *, again: bool = False) -> None:
        """Pass on what a worker reports.

        What the consumer already has is left out: a worker that follows a lost one tells `again`
        what the log holds. New events are numbered on, should the log have missed some because
        its disk was full, or there have been none.
        """
        if event.seq < self._next_seq:
            if again or isinstance(event, RunStarted):
                return
            event = msgspec.structs.replace(event, seq=self._next_seq)
        self._next_seq = event.seq + 1
        self._at = event.at
        self.events.put_nowait(event)
        if isinstance(event, RunFinished | RunFailed):
            self.end()

    def conclude_cancelled(self) -> None:
        """End as cancelled without the worker's word."""
        self.deliver(
            RunFinished(seq=self._next_seq, at=self._at, stop=Stop.CANCELLED, counters=Counters())
        )

    def fail(self, trouble: Trouble, message: str, advice: str, *, keep_log: bool) -> None:
        """End as failed.

        Args:
            keep_log: leave a log in place that was kept only to resume the run.
        """
        self.deliver(
            RunFailed(
                seq=self._next_seq, at=self._at, trouble=trouble, message=message, advice=advice
            )
        )

    def end(self) -> None:
        """Nothing more is to come."""
        self.ended = True


class PendingRun(Pending):
    """A problem being solved; after a loss it goes on from its log."""

    def __init__(self, id: str, request: SolveRequest) -> None:
        super().__init__(id)
        self._request = request
        self._unsaved = new_log(id) if request.log is None else None

    @property
    def log(self) -> str | None:
        return self._request.log or self._unsaved

    def order(self) -> Solve:
        resume = self._request.resume or (bool(self._cause) and self.log is not None)
        request = msgspec.structs.replace(self._request, log=self.log, resume=resume)
        return Solve(run=self.id, request=request, cause=self._cause)

    def deliver(self, event: AnyEvent, *, again: bool = False) -> None:
        if isinstance(event, RunStarted) and self._request.log is None:
            event = msgspec.structs.replace(event, request=self._request)
        super().deliver(event, again=again)

    def fail(self, trouble: Trouble, message: str, advice: str, *, keep_log: bool) -> None:
        if keep_log:
            self._unsaved = None
        super().fail(trouble, message, advice, keep_log=keep_log)

    def end(self) -> None:
        super().end()
        if self._unsaved is not None:
            remove_log(self._unsaved)
            self._unsaved = None


class PendingScore(Pending):
    """A solution being scored; after a loss it is scored again."""

    def __init__(self, id: str, request: ScoreRequest) -> None:
        super().__init__(id)
        self._request = request

    def order(self) -> Score:
        return Score(run=self.id, request=self._request)
