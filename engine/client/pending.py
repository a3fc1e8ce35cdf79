"""A run that a client waits for."""

from __future__ import annotations

import asyncio

import msgspec

from engine.client.unsaved import new_log, remove_log
from engine.protocol import (
    AnyEvent,
    Counters,
    RunFailed,
    RunFinished,
    RunStarted,
    Solve,
    SolveRequest,
    Stop,
    Trouble,
    WorkerRestarted,
)


class PendingRun:
    """One run, over all the workers that it may need.

    Attributes:
        events: what the consumer has not taken yet.
        cancelled: whether somebody asked for its end.
        losses: how many workers were lost in it.
        ended: whether its last event is in `events`.
    """

    def __init__(self, id: str, request: SolveRequest) -> None:
        self.id = id
        self.events: asyncio.Queue[AnyEvent] = asyncio.Queue()
        self.cancelled = False
        self.losses = 0
        self.ended = False
        self._request = request
        self._unsaved = new_log(id) if request.log is None else None
        self._cause = ""
        self._next_seq = 0
        self._at = 0.0
        self._told_again = False

    @property
    def log(self) -> str | None:
        """Where its log is."""
        return self._request.log or self._unsaved

    def order(self) -> Solve:
        """The message that makes a worker start the run, or go on with it after a loss."""
        self._told_again = bool(self._cause)
        resume = self._request.resume or (bool(self._cause) and self.log is not None)
        request = msgspec.structs.replace(self._request, log=self.log, resume=resume)
        return Solve(run=self.id, request=request, cause=self._cause)

    def lost(self, cause: str) -> None:
        """Its worker was lost and it shall go on with another."""
        self.losses += 1
        self._cause = cause

    def deliver(self, event: AnyEvent) -> None:
        """Pass on what a worker reports.

        After a loss the new worker first tells again what the log holds; that ends with
        `WorkerRestarted`, and what the consumer already has is left out until then. Later events
        are numbered on from there, should the log have missed some (its disk was full).
        """
        last = isinstance(event, RunFinished | RunFailed)
        if isinstance(event, WorkerRestarted):
            self._told_again = False
        if self._told_again and event.seq < self._next_seq and not last:
            return
        if isinstance(event, RunStarted) and self._request.log is None:
            event = msgspec.structs.replace(event, request=self._request)
        if event.seq < self._next_seq:
            event = msgspec.structs.replace(event, seq=self._next_seq)
        self._next_seq = event.seq + 1
        self._at = event.at
        self.events.put_nowait(event)
        if last:
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
        if keep_log:
            self._unsaved = None
        self.deliver(
            RunFailed(
                seq=self._next_seq, at=self._at, trouble=trouble, message=message, advice=advice
            )
        )

    def end(self) -> None:
        """Nothing more is to come."""
        self.ended = True
        if self._unsaved is not None:
            remove_log(self._unsaved)
            self._unsaved = None
