"""Converting a checkpoint to GGUF, in a process of its own.

Unfinished files are in a hidden folder beside the result. It goes with the conversion however that
ends; one left behind by a power cut goes with the next conversion to the same place.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager, suppress
from io import FileIO
from pathlib import Path
from time import sleep

import msgspec

from engine.checkpoints.folder import checkpoint_name
from engine.client.boot import python
from engine.client.loss import explain
from engine.client.memory_kills import count_memory_kills
from engine.client.worker_log import WorkerLog
from engine.errors import EngineError
from engine.lock import try_lock
from engine.places import converted_dir
from engine.protocol.conversion import (
    BodyType,
    Conversion,
    ConversionFailed,
    Convert,
    Converted,
    Converting,
)
from engine.protocol.events import Trouble

__all__ = ["BodyType", "Converted", "Converting", "Unfinished", "convert"]


class Unfinished:
    """What a conversion has begun, for a process that has to end before the iteration does."""

    def __init__(self) -> None:
        self.work: Path | None = None
        self.process: Process | None = None

    def remove(self) -> None:
        """End the conversion and remove its files at once, in a signal's handler too."""
        if self.process is not None:
            with suppress(ProcessLookupError):
                self.process.kill()
        tries = 100  # the process may make one more file before it is gone
        while self.work is not None and self.work.exists() and tries:
            shutil.rmtree(self.work, ignore_errors=True)
            tries -= 1
            sleep(0.01)


async def convert(
    folder: Path,
    kind: BodyType,
    *,
    out: Path | None = None,
    format: str | None = None,
    unfinished: Unfinished | None = None,
) -> AsyncGenerator[Converting | Converted, None]:
    """Convert a checkpoint; `Converted` comes last.

    Leaving the iteration, or cancelling it, ends the conversion at once and leaves nothing behind.

    Args:
        out: the file to be made; by default one with the checkpoint's name among the models.
        format: the format of a verifier that its head and its name do not tell of.
        unfinished: told of what is begun.

    Raises:
        EngineError: it cannot be converted, or `out` is there already.
    """
    out = (out or converted_dir() / f"{checkpoint_name(folder)}-{kind}.gguf").absolute()
    if out.suffix != ".gguf":
        raise EngineError(
            Trouble.USAGE, f"{out.name} does not end in .gguf.", "Models are known by that ending."
        )
    if out.exists():
        raise EngineError(
            Trouble.USAGE, f"{out} is there already.", "Remove it first, or choose another --out."
        )
    unfinished = unfinished or Unfinished()
    try:
        with _workplace(out) as work:
            unfinished.work = work
            order = Convert(
                folder=str(folder.absolute()),
                kind=kind,
                out=str(out),
                work=str(work),
                format=format,
            )
            async with aclosing(_run(order, unfinished)) as messages:
                async for message in messages:
                    yield message
    finally:
        unfinished.work = None  # from here on it may be another conversion's


async def _run(
    order: Convert, unfinished: Unfinished
) -> AsyncGenerator[Converting | Converted, None]:
    log = WorkerLog()
    kills = count_memory_kills()
    with log.open() as stderr:
        process = await asyncio.create_subprocess_exec(
            *python("engine.convert", msgspec.json.encode(order).decode()),
            stdin=None,
            stdout=PIPE,
            stderr=stderr,
        )
    unfinished.process = process
    assert process.stdout is not None
    try:
        async for line in process.stdout:
            match msgspec.json.decode(line, type=Conversion):
                case ConversionFailed(trouble, message, advice):
                    raise EngineError(trouble, message, advice)
                case Converted() as converted:
                    yield converted
                    return
                case Converting() as converting:
                    yield converting
        code = await process.wait()
        trouble, cause = explain(code, log.tail(), memory_kills=count_memory_kills() - kills)
        raise EngineError(
            trouble,
            f"The process that converts was lost: {cause}. Nothing was written.",
            f"What it printed is in {log.path}." if log.path else "",
        )
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await asyncio.shield(process.wait())


@contextmanager
def _workplace(out: Path) -> Iterator[Path]:
    """A folder beside `out` for the time of a conversion, with one conversion at a time in it."""
    work = out.with_name(f".{out.name}.part")
    try:
        work.mkdir(parents=True, exist_ok=True)
        lock = FileIO(work / "lock", "a")
    except OSError as error:
        raise EngineError(
            Trouble.STORAGE,
            f"{out.parent} cannot be written: {error.strerror}.",
            "Choose another place with --out.",
        ) from None
    with lock:
        if not try_lock(lock):
            raise EngineError(
                Trouble.USAGE, f"{out.name} is being made by another conversion right now."
            )
        for left in work.iterdir():
            if left.name != "lock":
                left.unlink()
        try:
            yield work
        finally:
            if os.name == "nt":  # where an open file cannot be removed
                lock.close()
            shutil.rmtree(work, ignore_errors=True)
