"""Converting a checkpoint to GGUF, in a process of its own.

Unfinished files are in a hidden folder beside the result. It goes with the conversion however that
ends; one left behind by a power cut goes with the next conversion to the same place.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from asyncio.subprocess import PIPE
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager, suppress
from io import FileIO
from pathlib import Path

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

__all__ = ["BodyType", "Converted", "Converting", "convert"]


async def convert(
    folder: Path, kind: BodyType, *, out: Path | None = None, format: str | None = None
) -> AsyncGenerator[Converting | Converted, None]:
    """Convert a checkpoint; `Converted` comes last.

    Leaving the iteration, or cancelling it, ends the conversion at once and leaves nothing behind.

    Args:
        out: the file to be made; by default one with the checkpoint's name among the models.
        format: the format of a verifier that its head and its name do not tell of.

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
    with _workplace(out) as work:
        order = Convert(
            folder=str(folder.absolute()), kind=kind, out=str(out), work=str(work), format=format
        )
        async with aclosing(_run(order)) as messages:
            async for message in messages:
                yield message


async def _run(order: Convert) -> AsyncGenerator[Converting | Converted, None]:
    log = WorkerLog()
    kills = count_memory_kills()
    with log.open() as stderr:
        process = await asyncio.create_subprocess_exec(
            *python("engine.convert", msgspec.json.encode(order).decode()),
            stdin=None,
            stdout=PIPE,
            stderr=stderr,
        )
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
