"""Converting a checkpoint, with its progress on standard error."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import aclosing
from pathlib import Path
from typing import Protocol

from app import output
from app.exit_codes import ExitCode
from app.interrupts import interrupts
from app.printable import one_line
from engine.client.converting import BodyType, Converted, Unfinished, convert
from engine.client.planning import size_text


async def convert_checkpoint(
    folder: Path, kind: BodyType, out: Path | None, format: str | None, *, as_json: bool
) -> ExitCode:
    """Convert one checkpoint and say what was made.

    Raises:
        EngineError: it cannot be converted.
    """
    task = asyncio.current_task()
    assert task is not None
    shown = _shown()
    unfinished = Unfinished()
    with interrupts(lambda: _cancel(task), unfinished.remove):
        try:
            async with aclosing(
                convert(folder, kind, out=out, format=format, unfinished=unfinished)
            ) as messages:
                async for message in messages:
                    if isinstance(message, Converted):
                        shown.close()
                        _tell(message, as_json=as_json)
                    else:
                        shown.advance(message.doing, message.done)
        except asyncio.CancelledError:
            shown.close()
            output.narrate("Stopped. Nothing was written.")
            return ExitCode.STOPPED
        finally:
            shown.close()
    return ExitCode.OK


def _cancel(task: asyncio.Task[object]) -> None:
    task.cancel()


def _tell(made: Converted, *, as_json: bool) -> None:
    if as_json:
        fields = {"body": made.body, "bytes": made.bytes, "head": made.head, "format": made.format}
        output.data(json.dumps(fields) + "\n")
        return
    output.data(f"{made.body}\n")
    what = f"a verifier of the format {made.format}" if made.format else "a generator"
    output.narrate(f"Made {what}, {size_text(made.bytes)}.")
    if made.head:
        output.narrate(f"Its head is {one_line(made.head)}; keep the two together.")


class _Shown(Protocol):
    def advance(self, doing: str, done: float) -> None: ...
    def close(self) -> None: ...


def _shown() -> _Shown:
    if not output.is_screen(sys.stderr):
        return _Lines()
    from app.terminal import terminal
    from app.work_bar import WorkBar

    return WorkBar(terminal())


class _Lines:
    """A line a quarter of each kind of work."""

    def __init__(self) -> None:
        self._told = ("", 0)

    def advance(self, doing: str, done: float) -> None:
        now = (doing, int(done * 4))
        if now != self._told:
            self._told = now
            output.narrate(f"{doing} {done:.0%}")

    def close(self) -> None:
        pass
