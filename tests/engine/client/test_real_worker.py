"""The real worker with the embedded generator."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from engine.client import LocalEngine, read_run
from engine.client.process import COMMAND
from engine.protocol import (
    AnyEvent,
    NodeOpened,
    RunFinished,
    RunResumed,
    Search,
    Shutdown,
    SolveRequest,
    StepFinished,
    Stop,
    TextAppended,
    encode,
)

from .driving import ending

pytest.importorskip("llama_cpp")

PROBLEM = "Tom has 23 apples and buys 4 more. How many apples does Tom have?"


def request(log: Path | None = None, *, n: int = 8, step_tokens: int = 64) -> SolveRequest:
    search = Search(policy="majority", n=n, max_steps=6, step_tokens=step_tokens)
    return SolveRequest(problem=PROBLEM, search=search, log=str(log) if log else None)


def steps(events: list[AnyEvent]) -> dict[tuple[int, ...], StepFinished]:
    return {event.lineage: event for event in events if isinstance(event, StepFinished)}


def test_a_run_survives_the_death_of_its_worker(tmp_path: Path) -> None:
    before: list[AnyEvent] = []

    async def run() -> list[AnyEvent]:
        events: list[AnyEvent] = []
        async with LocalEngine() as local:
            async for event in local.solve(request(tmp_path / "log")):
                events.append(event)
                if isinstance(event, StepFinished) and not before:
                    before.extend(events)
                    for child in psutil.Process().children():
                        child.kill()
        return events

    events = asyncio.run(run())
    assert ending(events).stop is Stop.COMPLETE
    assert any(isinstance(event, RunResumed) for event in events)
    assert events[: len(before)] == before
    assert [event.seq for event in events] == list(range(len(events)))
    assert list(read_run(tmp_path / "log")) == events
    finished = [event.lineage for event in events if isinstance(event, StepFinished)]
    assert len(finished) == len(set(finished))
    opened = {event.lineage for event in events if isinstance(event, NodeOpened)}
    assert opened == set(finished)


def test_cancel_stops_the_real_search_at_once() -> None:
    async def run() -> tuple[AnyEvent, float]:
        async with LocalEngine() as local:
            cancelled = 0.0
            last: AnyEvent | None = None
            async for event in local.solve(request(n=16)):
                if isinstance(event, TextAppended) and not cancelled:
                    local.cancel()
                    cancelled = time.monotonic()
                last = event
            assert last is not None
            return last, time.monotonic() - cancelled

    last, seconds = asyncio.run(run())
    assert isinstance(last, RunFinished)
    assert last.stop is Stop.CANCELLED
    assert seconds < 2


def test_nothing_is_imported_from_the_directory_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "engine").mkdir()
    for name in ("engine/__init__.py", "random.py", "msgspec.py"):
        (tmp_path / name).write_text("raise SystemExit('imported from the wrong place')")
    done = subprocess.run(COMMAND, cwd=tmp_path, input=encode(Shutdown()), capture_output=True)
    assert done.returncode == 0
    assert done.stderr == b""
    assert sys.executable in COMMAND
