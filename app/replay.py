"""Show a logged run again."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

from app import output
from app.display import Display, print_answer, renderer_for
from app.errors import CommandError
from app.follow import follow
from app.glyphs import glyphs_for
from app.logs import events_in, how_to_go_on
from app.run_view import RunView
from app.text_tree import text_tree
from engine.protocol import AnyEvent


def replay(path: Path, display: Display, speed: float) -> None:
    """Show the run as it was, timed by its own clock.

    Args:
        speed: how many times faster; 0 shows all at once.

    Raises:
        CommandError: the file is not a run log.
    """
    view = RunView()
    timed = display is Display.AUTO and output.is_screen(sys.stderr)
    events = _timed(path, speed if timed else 0.0)
    asyncio.run(follow(events, view, renderer_for(display, view, speed=speed)))
    if display is Display.AUTO:
        if not view.ended:
            output.narrate(f"The run was interrupted. {how_to_go_on(path)}")
        print_answer(view)


def print_tree(path: Path) -> None:
    """Print the whole tree of the run.

    Raises:
        CommandError: the file is not a run log; or it is damaged, after what comes before that.
    """
    view = RunView()
    try:
        for event in events_in(path):
            view.update(event)
    except CommandError:
        _print(view)
        raise
    _print(view)


def _print(view: RunView) -> None:
    for line in text_tree(view, glyphs_for(sys.stdout.encoding)):
        output.data(line + "\n")


async def _timed(path: Path, speed: float) -> AsyncGenerator[AnyEvent, None]:
    before: float | None = None
    for event in events_in(path):
        if speed and before is not None and event.at > before:
            await asyncio.sleep((event.at - before) / speed)
        before = event.at
        yield event
