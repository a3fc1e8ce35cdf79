"""Follow one run to its end: one stream of events, one view, one renderer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress

from app.render import Renderer
from app.run_view import RunView
from engine.protocol import AnyEvent

TICK = 0.1
"""Seconds between two pictures of the live view."""


async def follow(events: AsyncGenerator[AnyEvent, None], view: RunView, renderer: Renderer) -> None:
    """Show the events until there are no more."""
    renderer.start()
    ticking = asyncio.create_task(_tick(renderer.tick))
    try:
        async with aclosing(events):
            async for event in events:
                view.update(event)
                renderer.show(event)
    finally:
        ticking.cancel()
        with suppress(asyncio.CancelledError):
            await ticking
        renderer.close()


async def _tick(tick: Callable[[], None]) -> None:
    while True:
        tick()
        await asyncio.sleep(TICK)
