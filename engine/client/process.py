"""One worker process, seen from the client."""

from __future__ import annotations

import asyncio
import contextlib
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Sequence

import msgspec

from engine.client.boot import python
from engine.client.loss import Loss, explain
from engine.client.memory_kills import count_memory_kills
from engine.client.worker_log import WorkerLog
from engine.protocol import VERSION, Hello, Pulse, Shutdown, Trouble, decode_message, encode
from engine.protocol.messages import Message

_GRACE = 1.0
"""Seconds a worker has to end when told so, before it is ended a harder way."""
_CHUNK = 1 << 16

COMMAND = python("engine.service")


class WorkerProcess:
    """A running worker.

    Attributes:
        log: what it prints.
        steps: grows with every sign that it gets on.
        hung_after: set to the seconds without such a sign when it is killed for that.
    """

    def __init__(self, process: Process, log: WorkerLog) -> None:
        self.log = log
        self.steps = 0
        self.hung_after: float | None = None
        self._process = process
        self._memory_kills = count_memory_kills()
        self._progress = -1
        self._hello: Hello | None = None
        self._nonsense = False

    @classmethod
    async def start(cls, command: Sequence[str]) -> WorkerProcess:
        """Start a worker.

        Raises:
            OSError: the system does not start it.
        """
        log = WorkerLog()
        with log.open() as stderr:
            process = await asyncio.create_subprocess_exec(
                *command, stdin=PIPE, stdout=PIPE, stderr=stderr
            )
        return cls(process, log)

    @property
    def started(self) -> bool:
        """Whether it has come up and speaks this version."""
        return self._hello is not None and self._hello.version == VERSION

    def send(self, message: Message) -> None:
        """Send a message; one that a lost worker does not take is lost with it."""
        assert self._process.stdin is not None
        if not self._process.stdin.is_closing():
            self._process.stdin.write(encode(message))

    async def messages(self) -> AsyncIterator[Message]:
        """What the worker reports, until it ends, speaks another version, or talks nonsense."""
        async for line in self._lines():
            try:
                message = decode_message(line)
            except msgspec.DecodeError:
                self._nonsense = True
                self.kill()
                return
            match message:
                case Hello():
                    self._hello = message
                    self.steps += 1
                    if not self.started:
                        self.kill()
                        return
                case Pulse():
                    if message.progress != self._progress:
                        self._progress = message.progress
                        self.steps += 1
                case _:
                    self.steps += 1
                    yield message

    async def loss(self) -> Loss:
        """End what is left of the worker and say why it was lost."""
        ended_itself = await self._ends()
        await self.end()
        trouble, cause = self._explain(ended_itself)
        return Loss(trouble, cause, self.started, self.log.path)

    def _explain(self, ended_itself: bool) -> tuple[Trouble, str]:
        if self._hello is not None and not self.started:
            theirs = self._hello.version
            return Trouble.ENGINE, f"it speaks version {theirs} of the protocol, not {VERSION}"
        if self.hung_after is not None:
            return Trouble.ENGINE, f"it did not get on for {self.hung_after:g} s and was ended"
        if self._nonsense or not ended_itself:
            return Trouble.ENGINE, "it did not keep to the protocol and was ended"
        return explain(
            self._process.returncode or 0,
            self.log.tail(),
            memory_kills=count_memory_kills() - self._memory_kills,
        )

    def kill(self) -> None:
        """End the worker at once."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    async def end(self) -> None:
        """End the worker for sure: asked, then told, then killed, and killed if cancelled here."""
        try:
            self.send(Shutdown())
            assert self._process.stdin is not None
            self._process.stdin.close()
            if not await self._ends():
                with contextlib.suppress(ProcessLookupError):
                    self._process.terminate()
                await self._ends()
        finally:
            if self._process.returncode is None:
                self.kill()
                await asyncio.shield(self._ends())

    async def _ends(self) -> bool:
        """Whether the worker ends within the grace period."""
        try:
            await asyncio.wait_for(self._ended(), _GRACE)
        except TimeoutError:
            return False
        return True

    async def _ended(self) -> None:
        """Wait until the worker has ended, taking what it still says so that it is not held up."""
        assert self._process.stdout is not None
        while await self._process.stdout.read(_CHUNK):
            pass
        await self._process.wait()

    async def _lines(self) -> AsyncIterator[bytes]:
        assert self._process.stdout is not None
        rest = bytearray()
        while chunk := await self._process.stdout.read(_CHUNK):
            *lines, tail = chunk.split(b"\n")
            for line in lines:
                yield bytes(rest + line)
                rest.clear()
            rest += tail
