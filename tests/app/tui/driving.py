"""Driving the app without a terminal."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic
from typing import Self
from unittest.mock import patch

from textual import events
from textual.pilot import Pilot

from app.logs import log_folder
from app.tui.app import SapwoodApp
from app.tui.archive import Archive, open_archive
from app.tui.costs import Cost
from app.tui.effort import Effort, Models
from app.tui.rows import Row
from app.tui.runner import Engine
from app.tui.settings import Settings
from app.tui.turn import Turn
from app.tui.widgets.composer import Composer
from app.tui.widgets.reasoning_tree import ReasoningTree
from app.tui.widgets.transcript import Transcript
from engine.protocol import AnyEvent, Counters, RunFinished, SolveRequest, Stop, encode
from tests.app.streams import whole_run

WIDE = (120, 40)
SMALL = (80, 24)


class ToldEngine:
    """Stands for `LocalEngine`. The n-th request gets the n-th list of events, or the last one.

    Args:
        hold: how many events are told before the engine goes quiet, as a busy one does; it then
            waits to be cancelled, or for `release`.
    """

    def __init__(self, *scripts: Sequence[AnyEvent], hold: int | None = None) -> None:
        self.requests: list[SolveRequest] = []
        self.cancelled: list[str | None] = []
        self.deaf = False
        """Whether a cancel is not answered, as by an engine in the middle of something."""
        self._scripts = scripts or (whole_run(),)
        self._hold = hold
        self._go = asyncio.Event()
        self._stop = asyncio.Event()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        pass

    def release(self) -> None:
        self._go.set()

    def cancel(self, run: str | None = None) -> None:
        self.cancelled.append(run)
        if not self.deaf:
            self._stop.set()

    async def solve(
        self, request: SolveRequest, *, run: str | None = None
    ) -> AsyncGenerator[AnyEvent, None]:
        script = self._scripts[min(len(self.requests), len(self._scripts) - 1)]
        self.requests.append(request)
        self._stop.clear()
        told: list[AnyEvent] = []
        for place, event in enumerate(script):
            if place == self._hold and not await self._released():
                yield RunFinished(seq=place, stop=Stop.CANCELLED, counters=Counters())
                return
            told.append(event)
            yield event
        if request.log is not None:
            write_log(request.log, told)

    async def _released(self) -> bool:
        waits = [asyncio.create_task(event.wait()) for event in (self._go, self._stop)]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        return self._go.is_set()


def write_log(path: str, events: Sequence[AnyEvent]) -> None:
    Path(path).write_bytes(b"".join(encode(event) for event in events))


class Driver:
    """A running app and the hand on its keys."""

    def __init__(self, app: SapwoodApp, pilot: Pilot[None]) -> None:
        self.app = app
        self.pilot = pilot

    @property
    def transcript(self) -> Transcript:
        return self.app.chat.query_one(Transcript)

    @property
    def tree(self) -> ReasoningTree:
        return self.app.chat.query_one(ReasoningTree)

    @property
    def turn(self) -> Turn:
        """The selected one."""
        assert self.transcript.selected is not None
        return self.transcript.selected

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    def burst(self, *keys: str) -> None:
        """Press keys faster than the app can follow, as on a busy machine."""
        for key in keys:
            letter = key.removeprefix("alt+")
            self.app.post_message(events.Key(key, letter if len(letter) == 1 else None))

    async def ask(self, problem: str = "How many?") -> Turn:
        """Write a question and send it."""
        count = len(self.transcript.turns)
        self.app.chat.query_one(Composer).write(problem)
        await self.press("enter")
        await self.until(lambda: len(self.transcript.turns) > count)
        return self.transcript.turns[-1]

    async def solve(self, problem: str = "How many?") -> Turn:
        """Ask and wait for the end."""
        turn = await self.ask(problem)
        await self.until(lambda: turn.view.ended)
        return turn

    async def until(self, holds: Callable[[], object], limit: float = 60.0) -> None:
        """Wait until something holds; a pause of the pilot does not wait for tasks."""
        end = monotonic() + limit
        while not holds():
            if monotonic() > end:
                raise AssertionError(f"it did not come true; the screen was\n{self.screen()}")
            await asyncio.sleep(0.02)

    async def until_shown(self, words: str, limit: float = 60.0) -> None:
        await self.until(lambda: words in self.screen(), limit)

    def screen(self) -> str:
        """What a person sees."""
        strips = self.app.screen._compositor.render_strips()
        lines = ("".join(segment.text for segment in strip).rstrip() for strip in strips)
        return "\n".join(lines)

    def rows(self) -> list[str]:
        """The tree, a line a row, indented by depth."""
        return [row_text(row) for row in self.tree.rows]


def row_text(row: Row) -> str:
    if row.dead:
        return "  " * len(row.node.lineage) + f"+{len(row.dead)}"
    return "  " * (len(row.node.lineage) - 1) + ".".join(map(str, row.node.lineage))


@asynccontextmanager
async def running(
    engine: Engine | None = None,
    *,
    size: tuple[int, int] = WIDE,
    settings: Settings | None = None,
) -> AsyncIterator[Driver]:
    """The app with an engine, past its first-run screen."""
    archive = open_archive()
    assert isinstance(archive, Archive)
    app = SapwoodApp(
        engine or ToldEngine(),
        log_folder=log_folder(),
        archive=archive,
        settings=settings or Settings(welcomed=True),
    )
    app.animation_level = "none"  # nothing here is about movement, which only takes time
    with patch("app.tui.screens.chat.planned", _no_plan):  # it depends on the machine
        async with app.run_test(size=size, notifications=True) as pilot:
            driver = Driver(app, pilot)
            await driver.until(lambda: app.chat.is_mounted)
            yield driver


def _no_plan(models: Models, effort: Effort) -> Cost:
    return Cost()
