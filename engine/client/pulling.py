"""Fetching a model of the catalogue, in a process of its own."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import PIPE
from collections.abc import AsyncGenerator
from contextlib import suppress

from engine.catalogue import Role
from engine.client.boot import python
from engine.errors import EngineError
from engine.hub.messages import Fetched, Progress, Refused, decode
from engine.protocol.events import Trouble

__all__ = ["Fetched", "Progress", "pull"]


async def pull(
    role: Role, name: str, *, force: bool = False
) -> AsyncGenerator[Progress | Fetched, None]:
    """Have a model of the catalogue on this machine; `Fetched` comes last.

    Leaving the iteration, or cancelling it, ends the download at once; the next one goes on from
    what came.

    Args:
        force: fetch it though it does not fit into the memory that is free.

    Raises:
        EngineError: it cannot be had, there is no room for it, or it would not fit.
    """
    arguments = (role, name, *(("--force",) if force else ()))
    process = await asyncio.create_subprocess_exec(
        *python("engine.client.puller", *arguments), stdin=None, stdout=PIPE, stderr=PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    said = asyncio.create_task(process.stderr.read())
    try:
        async for line in process.stdout:
            match decode(line):
                case Refused(trouble, message, advice, forcible):
                    raise EngineError(trouble, message, advice, forcible=forcible)
                case Fetched() as fetched:
                    yield fetched
                    return
                case Progress() as progress:
                    yield progress
        words = (await said).decode(errors="replace").strip().rpartition("\n")[2]
        raise EngineError(
            Trouble.ENGINE,
            f"The download ended without a word: {words or 'its process was ended from outside'}.",
            "What came is kept; do it again to go on from there.",
        )
    finally:
        said.cancel()
        with suppress(ProcessLookupError):
            process.kill()
        await asyncio.shield(process.wait())
