"""Downloading and checking models, with their progress on standard error."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from typing import Protocol

import msgspec

from app import output
from app.exit_codes import ExitCode
from app.interrupts import interrupts
from app.printable import one_line
from engine.client.models import Model, State
from engine.client.models import verify as verify_model
from engine.client.planning import size_text
from engine.client.pulling import Fetched, Progress, pull

_EVERY = 5.0
"""Seconds between two lines of progress where there is no bar."""


class Shown(Protocol):
    """Shows progress."""

    def advance(self, progress: Progress) -> None: ...
    def close(self) -> None: ...


async def pull_models(wanted: list[Model], *, force: bool, as_json: bool) -> ExitCode:
    """Download one after another.

    Raises:
        EngineError: one cannot be had; those before it are here.
    """
    task = asyncio.current_task()
    assert task is not None
    with interrupts(lambda: _cancel(task)):
        try:
            for model in wanted:
                await _pull(model, force=force, as_json=as_json)
        except asyncio.CancelledError:
            output.narrate("Stopped. What came is kept; the same command goes on from there.")
            return ExitCode.STOPPED
    return ExitCode.OK


def _cancel(task: asyncio.Task[object]) -> None:
    task.cancel()


async def _pull(model: Model, *, force: bool, as_json: bool) -> None:
    if model.state is State.HERE:
        output.narrate(f"{one_line(model.id)} is here already: {one_line(str(model.path))}")
        return
    with _shown(as_json) as shown:
        async with aclosing(pull(model.role, model.id, force=force)) as messages:
            async for message in messages:
                match message:
                    case Progress() as progress:
                        shown.advance(progress)
                    case Fetched() as fetched:
                        shown.close()
                        _fetched(model, fetched, as_json=as_json)


def _fetched(model: Model, fetched: Fetched, *, as_json: bool) -> None:
    if as_json:
        output.data(
            json.dumps(msgspec.to_builtins(fetched, enc_hook=str) | {"id": model.id}) + "\n"
        )
        return
    checked = "its checksum is right" if fetched.checked else "the hub gave no checksum for it"
    path = one_line(str(fetched.path))
    if model.state is State.CONVERT:
        how = f"Convert them with: sapwood models convert {path}"
        output.narrate(f"{one_line(model.id)}: its weights are here. {how}")
        return
    output.narrate(f"{one_line(model.id)} is here, {checked}: {path}")


def verify_models(chosen: list[Model], *, as_json: bool) -> ExitCode:
    """Check one after another.

    Raises:
        EngineError: one is not what it should be.
    """
    for model in chosen:
        with _shown(as_json=False) as shown:
            word = verify_model(model, shown.advance)
        if as_json:
            row = {"id": model.id, "role": model.role, "path": str(model.path), "found": word}
            output.data(json.dumps(row) + "\n")
        else:
            output.data(f"{one_line(model.id)} ({model.role}): {word}\n")
    return ExitCode.OK


@contextmanager
def _shown(as_json: bool) -> Iterator[Shown]:
    shown: Shown
    if as_json:
        shown = _Json()
    elif output.is_screen(sys.stderr):
        from app.download_bar import DownloadBar
        from app.terminal import terminal

        shown = DownloadBar(terminal())
    else:
        shown = _Lines()
    try:
        yield shown
    finally:
        shown.close()


class _Json:
    """Each progress as an object."""

    def advance(self, progress: Progress) -> None:
        output.data(msgspec.json.encode(progress) + b"\n")

    def close(self) -> None:
        pass


class _Lines:
    """A line now and then."""

    def __init__(self) -> None:
        self._told = time.monotonic()
        self._note = ""

    def advance(self, progress: Progress) -> None:
        now = time.monotonic()
        if now - self._told < _EVERY and progress.note == self._note:
            return
        self._told, self._note = now, progress.note
        note = f" ({one_line(progress.note)})" if progress.note else ""
        output.narrate(
            f"{one_line(progress.file)}: {size_text(progress.done)} of "
            f"{size_text(progress.total)}{note}"
        )

    def close(self) -> None:
        pass
