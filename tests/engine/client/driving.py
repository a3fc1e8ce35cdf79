"""Driving a LocalEngine whose worker has the scripted solver."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import psutil
from msgspec.structs import replace

from engine.client import LocalEngine
from engine.protocol import (
    Answered,
    AnyEvent,
    BeamsSelected,
    Event,
    NodesPruned,
    RunFailed,
    RunFinished,
    Search,
    SolveRequest,
    StepFinished,
    StepScored,
)

COMMAND = (sys.executable, str(Path(__file__).parents[1] / "service" / "scripted_worker.py"))


def engine(**options: float) -> LocalEngine:
    return LocalEngine(command=COMMAND, **options)


def request(
    problem: str = "", log: Path | None = None, *, resume: bool = False, rounds: int = 3
) -> SolveRequest:
    """`problem` says what goes wrong; see the scripted worker."""
    return SolveRequest(
        problem=problem,
        search=Search(n=4, width=2, max_steps=rounds),
        log=str(log) if log else None,
        resume=resume,
    )


def solve(request: SolveRequest, **options: float) -> list[AnyEvent]:
    """All events of one run in an engine of its own."""

    async def run() -> list[AnyEvent]:
        async with engine(**options) as local:
            return [event async for event in local.solve(request)]

    return asyncio.run(asyncio.wait_for(run(), 60))


def tree(events: list[AnyEvent]) -> list[Event]:
    """What the search found, without times and numbers."""
    kinds = (StepFinished, StepScored, NodesPruned, BeamsSelected, Answered)
    return [replace(event, seq=-1, at=0.0) for event in events if isinstance(event, kinds)]


def failure(events: list[AnyEvent]) -> RunFailed:
    assert isinstance(events[-1], RunFailed), events[-1]
    return events[-1]


def ending(events: list[AnyEvent]) -> RunFinished:
    assert isinstance(events[-1], RunFinished), events[-1]
    return events[-1]


def workers() -> list[psutil.Process]:
    """Workers of this process that are alive."""
    return [
        child
        for child in psutil.Process().children(recursive=True)
        if child.status() != psutil.STATUS_ZOMBIE and "scripted_worker" in " ".join(child.cmdline())
    ]


async def worker_is_up() -> None:
    """Wait until there is one worker."""
    while len(workers()) != 1:
        await asyncio.sleep(0.05)
