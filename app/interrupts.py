"""Ctrl-C: the first asks the run to stop, the second leaves at once."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

SHOW_CURSOR = b"\x1b[?25h\r\n"


@contextmanager
def interrupts(
    on_first: Callable[[], None], on_second: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """Within the block the first signal calls `on_first` in the event loop; the next one calls
    `on_second` in its handler and ends the process, with nothing awaited that could hang."""
    loop = asyncio.get_running_loop()
    asked = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            try:
                on_second()
            finally:
                _leave(128 + number)
        asked = True
        loop.call_soon_threadsafe(on_first)

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _leave(status: int) -> None:
    """End without cleaning up: the engine's process ends when its pipe closes, and the log holds
    every event that was told."""
    with suppress(OSError):
        if os.isatty(sys.stderr.fileno()):
            os.write(sys.stderr.fileno(), SHOW_CURSOR)
    os._exit(status)
