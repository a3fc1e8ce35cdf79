"""Turns to the engine, one after another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from types import TracebackType
from typing import Protocol, Self

from app.tui.turn import Turn
from engine.protocol import AnyEvent, RunFailed, SolveRequest, Trouble


class Engine(Protocol):
    """What the runner needs of `engine.client.LocalEngine`."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...

    def solve(
        self, request: SolveRequest, *, run: str | None = None
    ) -> AsyncGenerator[AnyEvent, None]: ...

    def cancel(self, run: str | None = None) -> None: ...


class Runner:
    """Keeps the queue of questions."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._queue: asyncio.Queue[Turn] = asyncio.Queue()

    async def work(self) -> None:
        """Solve what is asked, for ever. Ends the engine's process when cancelled."""
        async with self._engine:
            while True:
                await self._solve(await self._queue.get())  # a name here would keep it alive

    def ask(self, turn: Turn) -> None:
        """Solve the turn when those before it are done."""
        self._queue.put_nowait(turn)

    def stop(self, turn: Turn) -> None:
        """Stop a turn; it counts as stopped at once, whatever the engine is doing."""
        turn.stop()
        if turn.started:
            self._engine.cancel(turn.id)

    async def _solve(self, turn: Turn) -> None:
        if turn.stopped:
            return
        turn.started = True
        try:
            async with aclosing(self._engine.solve(turn.request, run=turn.id)) as events:
                async for event in events:
                    turn.put(event)
        except Exception as error:  # the app must outlive whatever the engine's client does
            message = f"Unexpected {type(error).__name__}: {error}."
            turn.put(RunFailed(trouble=Trouble.ENGINE, message=message))
