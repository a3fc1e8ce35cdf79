"""The engine as a process of its own on this machine."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import Self

from engine.client.loss import Loss
from engine.client.pending import Pending, PendingRun, PendingScore
from engine.client.process import COMMAND, WorkerProcess
from engine.client.unsaved import remove_old_logs
from engine.errors import EngineError
from engine.protocol import (
    AnyEvent,
    Cancel,
    Report,
    RunFailed,
    RunFinished,
    RunStarted,
    ScoreRequest,
    SolveRequest,
    Trouble,
)
from engine.runlog import read_run

_START_LIMIT = 60.0
"""Seconds a worker has to come up."""


class LocalEngine:
    """Does what it is asked for in a worker process. Runs that use the same models go on side by
    side.

    The worker starts with the first request and stays until the `async with` block is left, with
    its models loaded. If it is lost in the middle of a run, the run goes on in a new one, once.

    Args:
        command: what starts a worker.
        hang_after: seconds without any progress in a run after which its worker is taken for
            hung and replaced. A batch of a large model takes minutes on a busy processor.
        cancel_after: the same for a run that was cancelled, which then ends without an answer.
    """

    def __init__(
        self,
        *,
        command: Sequence[str] = COMMAND,
        hang_after: float = 600.0,
        cancel_after: float = 5.0,
    ) -> None:
        self._command = command
        self._hang_after = hang_after
        self._cancel_after = cancel_after
        self._runs: dict[str, Pending] = {}
        """In the order in which the worker takes them up."""
        self._suspects: set[str] = set()
        """Runs that lost a worker together. They are handed out one at a time, to tell whose fault
        it is should it happen again."""
        self._asked = asyncio.Event()
        self._worker: WorkerProcess | None = None
        self._keeper: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        remove_old_logs()
        self._keeper = asyncio.create_task(self._keep_a_worker())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._keeper is not None
        self._keeper.cancel()
        try:
            await asyncio.wait([self._keeper])
        finally:
            self._keeper = None
            for run in self._runs.values():
                run.conclude_cancelled()
            self._runs.clear()

    async def solve(
        self, request: SolveRequest, *, run: str | None = None
    ) -> AsyncGenerator[AnyEvent, None]:
        """Solve `request`; the last event is `RunFinished` or `RunFailed`.

        Leaving the loop over the events early cancels the run. (Who keeps the generator itself in
        a variable closes it with `contextlib.aclosing`.)

        Args:
            run: a name for the run; made up, or taken from the log that is resumed, if not given.
        """
        name = run or _name_in_log(request) or _new_name()
        if name in self._runs:
            yield RunFailed(trouble=Trouble.USAGE, message=f"The run {name} is already going on.")
            return
        async with aclosing(self._follow(PendingRun(name, request))) as events:
            async for event in events:
                yield event

    async def score(self, request: ScoreRequest) -> AsyncGenerator[AnyEvent, None]:
        """Score a solution: one `StepScored` of the root tells all scores; `RunFinished` or
        `RunFailed` comes last.

        Leaving the loop over the events early cancels it.
        """
        async with aclosing(self._follow(PendingScore(_new_name(), request))) as events:
            async for event in events:
                yield event

    async def _follow(self, pending: Pending) -> AsyncGenerator[AnyEvent, None]:
        """Have the worker do it, and pass on what it reports."""
        if self._keeper is None:
            raise RuntimeError("a LocalEngine is used inside 'async with'")
        self._runs[pending.id] = pending
        if self._worker is not None:
            self._hand_out(self._worker)
        self._asked.set()
        try:
            while True:
                event = await pending.events.get()
                yield event
                if isinstance(event, RunFinished | RunFailed):
                    return
        finally:
            self._cancel(pending)

    def cancel(self, run: str | None = None) -> None:
        """Stop a run, or all, within one decode step; `RunFinished` comes with the best answer."""
        for pending in self._runs.values():
            if run in (None, pending.id):
                self._cancel(pending)

    def _cancel(self, run: Pending) -> None:
        if run.ended or run.cancelled:
            return
        run.cancelled = True
        if self._worker is not None and run.handed_out:
            self._worker.send(Cancel(run=run.id))

    async def _keep_a_worker(self) -> None:
        """Have a worker whenever there is a run, and keep it."""
        while True:
            await self._asked.wait()
            try:
                loss = await self._serve()
            except Exception as error:  # whatever it is, nobody may wait for ever
                loss = Loss(Trouble.ENGINE, f"{type(error).__name__}: {error}", started=False)
            self._settle(loss)
            if not self._runs:
                self._asked.clear()

    async def _serve(self) -> Loss:
        """Start a worker, hand it all runs, and pass on what it reports until it is lost."""
        worker = self._worker = await WorkerProcess.start(self._command)
        watch = asyncio.create_task(self._watch(worker))
        try:
            self._hand_out(worker)
            async for message in worker.messages():
                if isinstance(message, Report) and (run := self._runs.get(message.run)):
                    run.deliver(message.event, again=message.again)
                    if run.ended:
                        del self._runs[run.id]
                        self._hand_out(worker)
            return await worker.loss()
        finally:
            self._worker = None
            watch.cancel()
            await worker.end()

    def _hand_out(self, worker: WorkerProcess) -> None:
        """Give the worker the runs that it should have and has not."""
        self._suspects &= self._runs.keys()
        for run in list(self._runs.values())[: 1 if self._suspects else None]:
            if not run.handed_out:
                run.handed_out = True
                worker.send(run.order())
                if run.cancelled:
                    worker.send(Cancel(run=run.id))

    async def _watch(self, worker: WorkerProcess) -> None:
        """Kill a worker that does not get on with the run it is at.

        The time is counted in ticks of this loop rather than taken from a clock, so that a
        machine asleep, or a terminal job stopped and continued, is not taken for a hang.
        """
        tick = min(1.0, self._hang_after / 4, self._cancel_after / 4)
        before: object = None
        quiet = 0.0
        while True:
            await asyncio.sleep(tick)
            now = worker.steps, [(run.id, run.cancelled) for run in self._runs.values()]
            quiet = quiet + tick if now == before else 0.0
            before = now
            if not self._runs:
                continue
            cancelled = all(run.cancelled for run in self._runs.values())
            limit = self._cancel_after if cancelled else self._hang_after
            if quiet >= (limit if worker.started else _START_LIMIT):
                worker.hung_after = quiet
                worker.kill()
                return

    def _settle(self, loss: Loss) -> None:
        """Decide what becomes of the runs after a loss."""
        if not loss.started:
            for run in self._runs.values():
                if run.cancelled:
                    run.conclude_cancelled()
                else:
                    _fail(run, "could not be started", loss)
            self._runs.clear()
            return
        handed_out = [run for run in self._runs.values() if run.handed_out]
        lost = [run for run in handed_out if run.begun] or handed_out[:1]
        for run in list(self._runs.values()):
            run.handed_out = False
            if run.cancelled:
                run.conclude_cancelled()
            elif run not in lost:
                continue
            elif len(lost) > 1:  # it may have been any of them
                run.lost(loss.cause)
            elif loss.trouble is Trouble.MEMORY:
                _fail(run, "was lost", loss)
            elif run.losses:
                _fail(run, "was lost for the second time in this run", loss)
            else:
                run.losses += 1
                run.lost(loss.cause)
            if run.ended:
                del self._runs[run.id]
        if len(lost) > 1:
            self._suspects.update(run.id for run in lost)


def _fail(run: Pending, what: str, loss: Loss) -> None:
    advice = []
    if loss.trouble is Trouble.MEMORY:
        advice.append("Use a smaller model, a smaller context or fewer paths (n).")
    if loss.started and run.log is not None:
        advice.append(f"What was found so far is in {run.log} and can be resumed.")
    if loss.output is not None:
        advice.append(f"What the process printed is in {loss.output}.")
    message = f"The engine's process {what}: {loss.cause}."
    run.fail(loss.trouble, message, " ".join(advice), keep_log=loss.started)


def _new_name() -> str:
    return uuid.uuid4().hex[:12]


def _name_in_log(request: SolveRequest) -> str | None:
    """The name of the run that `request` resumes, if its log tells."""
    if request.log is None or not request.resume:
        return None
    try:
        first = next(read_run(request.log))
    except EngineError:
        return None
    return first.run if isinstance(first, RunStarted) else None
