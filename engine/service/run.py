"""One run as the worker knows it: what was asked, what is known, and where its events go."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import cast

import msgspec

from engine.errors import EngineError
from engine.models.stop import StopSignal
from engine.protocol import (
    Answered,
    AnyEvent,
    BeamsSelected,
    Event,
    NodeOpened,
    RunFailed,
    RunFinished,
    RunResumed,
    RunStarted,
    SolveRequest,
    StepFinished,
    StepScored,
    TextAppended,
    Trouble,
    Warned,
    WorkerRestarted,
    encode,
)
from engine.scheduling.past import Past
from engine.search.policy import Lineage
from engine.service.history import History, read_history
from engine.service.runlog import RunLog, open_log
from engine.service.text import TextBuffer

_BORDERS = (StepFinished, StepScored, BeamsSelected, Answered, RunFinished, RunFailed)
"""Events after which the log should be on the disk."""


class Run:
    """A run in progress. Only the thread that solves it may call it; `stop` is for any thread.

    Attributes:
        id: names the run between client and worker.
        past: what is known of the tree from before an interruption.
        stop: set once the run is cancelled.
        finished: whether the last event was emitted.
        spent: what the run had cost before it was resumed.
        ties_flipped: nodes that came out differently from what the log had of them.
    """

    def __init__(
        self,
        id: str,
        request: SolveRequest,
        send: Callable[[AnyEvent], None],
        *,
        tell_again: Callable[[AnyEvent], None] | None = None,
        stop: StopSignal | None = None,
        log: RunLog | None = None,
        history: History | None = None,
        beat: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.id = id
        self.request = request
        self.stop = stop or StopSignal()
        self.finished = False
        self.ties_flipped = 0
        self.beat = beat
        """To be called with every step the engine takes, so that it is seen not to hang. Each
        `emit` does so too."""
        self._send = send
        self._tell_again = tell_again or send
        self._log = log
        self._history = history or History()
        self._clock = clock
        self._begin = clock() - self._history.seconds
        self._next_seq = len(self._history.events)
        self._text = TextBuffer()
        self._last_node: Lineage = ()
        self.past: Past = self._history.past
        self.spent = self._history.spent

    @property
    def events(self) -> int:
        """Events published so far."""
        return self._next_seq

    def start(self, cause: str = "") -> None:
        """Emit how the run begins: as a new one, or by telling again what its log holds.

        Args:
            cause: why the worker was lost that ran this before, if one was.
        """
        before = self._history.events
        for event in before:
            self._tell_again(event)
        self.finished = self._history.complete
        if self.finished:
            return
        if not before:
            now = datetime.now().astimezone().isoformat(timespec="milliseconds")
            self._publish([RunStarted(run=self.id, request=self.request, started=now)])
        if cause:
            self._publish([WorkerRestarted(cause=cause)])
        if before:
            self._publish([RunResumed(nodes=len(self.past.nodes), spent=self.spent)])
            before.clear()  # told; a long log need not stay in memory

    def emit(self, event: Event) -> None:
        """Log `event` and send it to the client.

        Text is joined to about 20 events a second a node; none of it is lost, and a node's own
        events keep their order. What a resumed run only repeats is left out.
        """
        self.beat()
        if self._history.repeats(event):
            return
        if isinstance(event, TextAppended):
            self._text.add(event.lineage, event.text)
            self._publish(self._text.take_due(self._clock()))
            return
        if isinstance(event, NodeOpened | StepFinished | StepScored):
            text = self._text.take(event.lineage)
        else:
            text = self._text.take_all()
        self._publish([*text, event])
        match event:
            case StepFinished():
                self._last_node = event.lineage
                self.ties_flipped += self._history.flips(event)
            case Answered():
                self._history.answered(event)
            case RunFinished() | RunFailed():
                self.finished = True

    def close(self) -> None:
        """Close the log, if it still is open."""
        log, self._log = self._log, None
        if log is not None:
            with contextlib.suppress(OSError):
                log.close()

    def _publish(self, events: Sequence[Event]) -> None:
        """Log first, send later: what the client has seen is never missing from the log."""
        if not events:
            return
        first = self._next_seq
        stamped = [self._stamp(event) for event in events]
        try:
            self._write(stamped)
        except OSError as error:
            self.close()
            self._next_seq = first
            self._publish([self._log_stopped(error), *events])
            return
        for event in stamped:
            self._send(event)

    def _stamp(self, event: Event) -> AnyEvent:
        at = round(self._clock() - self._begin, 6)
        seq = self._next_seq
        self._next_seq += 1
        return cast(AnyEvent, msgspec.structs.replace(event, seq=seq, at=at))

    def _write(self, events: Sequence[AnyEvent]) -> None:
        if self._log is None:
            return
        self._log.write(b"".join(map(encode, events)))
        if isinstance(events[-1], RunFinished | RunFailed):
            self._log.close()  # before the client hears of it, who may want to remove the file
        elif isinstance(events[-1], _BORDERS):
            self._log.sync()

    def _log_stopped(self, error: OSError) -> Warned:
        last = f"node {'.'.join(map(str, self._last_node))}" if self._last_node else "its start"
        return Warned(
            code="log",
            message=f"The run log stopped after {last}: {error.strerror or error}. The run "
            f"goes on; what the log holds up to there, in {self.request.log}, stays valid.",
        )


def open_run(
    id: str,
    request: SolveRequest,
    send: Callable[[AnyEvent], None],
    *,
    tell_again: Callable[[AnyEvent], None] | None = None,
    stop: StopSignal,
    beat: Callable[[], None],
) -> Run:
    """Open what `request` asks for: its log, and what that holds if it is to be resumed.

    Args:
        send: takes each event as it happens.
        tell_again: takes those that the log of a resumed run holds; `send` does if not given.

    Raises:
        EngineError: the log cannot be used.
    """
    make = partial(Run, id, request, send, tell_again=tell_again, stop=stop, beat=beat)
    if request.log is None:
        return make()
    log = open_log(request.log, resume=request.resume)
    try:
        history = read_history(request.log, request) if request.resume else History()
        log.cut(history.size)
    except OSError as error:
        log.close()
        raise EngineError(
            Trouble.STORAGE, f"The run log {request.log} cannot be written: {error.strerror}."
        ) from error
    except BaseException:
        log.close()
        raise
    return make(log=log, history=history)
