"""The worker process: it owns the models and solves one request after another.

Three threads: the main one solves, one takes the client's messages, and one sends a pulse each
second. The process ends as soon as its client asks for that or is gone, whatever it is doing:
the run log is complete at any moment, and ending is how device memory is given back for sure.
"""

from __future__ import annotations

import faulthandler
import os
import queue
import signal
import threading
import time
import traceback
from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import NoReturn, Protocol

from engine.errors import EngineError
from engine.models.stop import StopSignal
from engine.protocol import (
    VERSION,
    AnyEvent,
    Cancel,
    Counters,
    Event,
    Hello,
    Pulse,
    Report,
    RunFailed,
    RunFinished,
    Score,
    Shutdown,
    Solve,
    Stop,
    Trouble,
)
from engine.service.channel import Channel
from engine.service.run import Run, open_run
from engine.service.scoring import Scoring

PULSE = 1.0
"""Seconds between two pulses."""


class Solver(Protocol):
    """What solves a run."""

    def solve(self, run: Run) -> Iterator[None]:
        """Emit everything that happens in `run`, `RunFinished` last.

        Yields now and then, when other work may be given its turn.

        Raises:
            EngineError: the run cannot go on.
        """
        ...

    def score(self, scoring: Scoring) -> Iterator[None]:
        """Emit the scores, and `RunFinished` last. Yields as `solve` does.

        Raises:
            EngineError: it cannot be scored.
        """
        ...

    def close(self) -> None:
        """Give all memory back."""
        ...


class Work(Protocol):
    """A run or a scoring, as far as it can be brought to an end."""

    finished: bool
    stop: StopSignal

    @property
    def events(self) -> int:
        """Events told so far."""
        ...

    def emit(self, event: Event) -> None: ...


def main(make_solver: Callable[[], Solver]) -> NoReturn:
    """Serve the client at the other end of standard input and output until it lets go."""
    # A terminal's Ctrl-C reaches the client too, and the client decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    channel = Channel()
    faulthandler.enable()
    worker = _Worker(channel, make_solver)
    threading.Thread(target=_in_thread, args=(worker.take_messages,), daemon=True).start()
    threading.Thread(target=_in_thread, args=(worker.pulse,), daemon=True).start()
    _in_thread(worker.solve_all)


def _in_thread(work: Callable[[], None]) -> NoReturn:
    """Do `work`, which ends when the client lets go, and end the process with it.

    `os._exit` waits for no thread and for no native clean-up, so nothing can hold it up.
    """
    try:
        work()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


class _Worker:
    def __init__(self, channel: Channel, make_solver: Callable[[], Solver]) -> None:
        self._channel = channel
        self._make_solver = make_solver
        self._solver: Solver | None = None
        self._waiting: queue.SimpleQueue[Solve | Score] = queue.SimpleQueue()
        self._stops: dict[str, StopSignal] = {}
        self._dropped: RunFailed | None = None
        self._progress = 0
        self._busy = False

    def take_messages(self) -> None:
        for message in self._channel.messages():
            match message:
                case Solve() | Score():
                    self._stops[message.run] = StopSignal(self._beat)
                    self._waiting.put(message)
                case Cancel():
                    if stop := self._stops.get(message.run):
                        stop.set()
                case Shutdown():
                    return

    def pulse(self) -> None:
        while True:
            self._channel.send(Pulse(progress=self._progress, busy=self._busy))
            time.sleep(PULSE)

    def solve_all(self) -> None:
        self._channel.send(Hello(version=VERSION, pid=os.getpid()))
        going: list[Iterator[None]] = []
        while True:
            self._busy = bool(going)
            while not going or not self._waiting.empty():
                going.append(self._do(self._waiting.get()))
                self._busy = True
            going = [work for work in going if next(work, _ENDED) is not _ENDED]

    def _do(self, order: Solve | Score) -> Iterator[None]:
        try:
            if isinstance(order, Solve):
                yield from self._solve(order)
            else:
                yield from self._score(order)
        finally:
            del self._stops[order.run]

    def _solve(self, order: Solve) -> Iterator[None]:
        stop = self._stops[order.run]
        send = partial(self._report, order.run)
        try:
            run = open_run(
                order.run,
                order.request,
                send,
                tell_again=partial(send, again=True),
                stop=stop,
                beat=self._beat,
            )
        except EngineError as error:
            send(_failure(error))
            return
        try:
            run.start(order.cause)
            if not run.finished:
                yield from self._finish(run, lambda solver: solver.solve(run))
        finally:
            run.close()

    def _score(self, order: Score) -> Iterator[None]:
        send = partial(self._report, order.run)
        scoring = Scoring(order.request, send, self._stops[order.run], self._beat)
        yield from self._finish(scoring, lambda solver: solver.score(scoring))

    def _finish(self, work: Work, do: Callable[[Solver], Iterator[None]]) -> Iterator[None]:
        """Bring `work` to its last event."""
        if work.stop.is_set:  # cancelled before its turn
            work.emit(RunFinished(stop=Stop.CANCELLED, counters=Counters()))
            return
        failure: RunFailed | None = None
        try:
            failure = yield from self._do_with(self._ready_solver(), work, do)
        except EngineError as error:
            failure = _failure(error)
        except MemoryError:
            failure = self._drop_solver(_OUT_OF_MEMORY)
        except Exception as error:
            failure = self._drop_solver(_defect(f"{type(error).__name__}: {error}"))
        if not work.finished:
            work.emit(failure or _defect("the search ended without an ending"))

    def _do_with(
        self, solver: Solver, work: Work, do: Callable[[Solver], Iterator[None]]
    ) -> Generator[None, None, RunFailed | None]:
        """Work; returns why it failed if other work took the solver down with it."""
        told = work.events
        for _ in do(solver):
            yield
            if self._solver is not solver:
                if work.events > told:
                    return self._dropped
                return (yield from self._do_with(self._ready_solver(), work, do))
        return None

    def _ready_solver(self) -> Solver:
        if self._solver is None:
            try:
                self._solver = self._make_solver()
            except Exception as error:
                traceback.print_exc()
                raise EngineError(
                    Trouble.ENGINE,
                    f"The engine cannot be loaded: {error}.",
                    "Install Sapwood again, with a llama-cpp-python that fits this machine.",
                ) from error
        return self._solver

    def _drop_solver(self, cause: RunFailed) -> RunFailed:
        """Trust nothing that the solver holds after memory ran out or a defect showed.

        Returns:
            `cause`, of which all work that is going on fails.
        """
        traceback.print_exc()
        self._dropped = cause
        if self._solver is not None:
            self._solver.close()
            self._solver = None
        return cause

    def _beat(self) -> None:
        self._progress += 1

    def _report(self, run: str, event: AnyEvent, *, again: bool = False) -> None:
        self._channel.send(Report(run=run, event=event, again=again))


_ENDED = object()

_OUT_OF_MEMORY = RunFailed(
    trouble=Trouble.MEMORY,
    message="The engine ran out of memory.",
    advice="Use a smaller model, a smaller context or fewer paths (n).",
)


def _failure(error: EngineError) -> RunFailed:
    return RunFailed(
        trouble=error.trouble,
        message=error.message,
        advice=error.advice,
        forcible=error.forcible,
    )


def _defect(what: str) -> RunFailed:
    return RunFailed(
        trouble=Trouble.ENGINE,
        message=f"The engine has a defect: {what}.",
        advice="The engine's own log tells more; please report it.",
    )
