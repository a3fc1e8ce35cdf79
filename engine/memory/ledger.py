"""What the engines that run on this machine have promised themselves of its memory.

A run that has only just been planned has taken nothing yet, so that what is free does not show it.
Every engine therefore writes down what it is about to take, and plans within what the others
leave. One that has ended without a word is not counted.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path

import msgspec
import psutil

from engine.lock import try_lock
from engine.memory.devices import Device, Kind
from engine.memory.sizes import size_text
from engine.places import runs_dir

_PATIENCE = 5.0
"""Seconds to wait for another engine's planning, which takes a fraction of one."""


class Promise(msgspec.Struct, frozen=True):
    """Bytes of a device that a process may take in all."""

    pid: int
    started: float
    """When the process was created: the number alone may have been given to another since."""
    device: str
    bytes: int
    placed: bool = False
    """Whether it has taken them, so that the driver of a GPU counts them as used."""


class Ledger:
    """A file of promises. It is a convenience: without it, everyone plans for themselves."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep others from planning at the same time."""
        file: FileIO | None = None
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            file = FileIO(self._path.with_suffix(".lock"), "a")
            deadline = time.monotonic() + _PATIENCE
            while not try_lock(file) and time.monotonic() < deadline:
                time.sleep(0.01)
        try:
            yield
        finally:
            if file is not None:
                file.close()

    def others(self, device: str) -> list[Promise]:
        """Promises of other processes that still run."""
        me = psutil.Process().pid
        return [p for p in self._read() if p.device == device and p.pid != me and _runs(p)]

    def promise(self, device: str, size: int, *, placed: bool) -> None:
        """Write down what this process takes, instead of what it took before."""
        me = psutil.Process()
        mine = Promise(me.pid, me.create_time(), device, size, placed)
        self._write([*(p for p in self._read() if p.pid != me.pid and _runs(p)), mine])

    def withdraw(self) -> None:
        """This process takes nothing any more."""
        me = psutil.Process().pid
        self._write([p for p in self._read() if p.pid != me and _runs(p)])

    def _read(self) -> list[Promise]:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=list[Promise])
        except (OSError, msgspec.DecodeError):
            return []

    def _write(self, promises: Sequence[Promise]) -> None:
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            fresh = self._path.with_suffix(".new")
            fresh.write_bytes(msgspec.json.encode(promises))
            fresh.replace(self._path)


def ledger_file() -> Path:
    """Where promises are kept."""
    return runs_dir().parent / "promises.json"


def outstanding(promise: Promise, device: Device) -> int:
    """Bytes of a promise that what is free of the device still includes."""
    if device.kind is Kind.GPU:
        return 0 if promise.placed else promise.bytes
    try:
        return max(0, promise.bytes - anonymous(psutil.Process(promise.pid)))
    except psutil.Error:
        return 0


def anonymous(process: psutil.Process) -> int:
    """Resident bytes that are no pages of files, which would still count as available."""
    memory = process.memory_info()
    return memory.rss - getattr(memory, "shared", 0)


def holders(promises: Sequence[Promise]) -> str:
    """Who holds what, as a sentence; empty if nobody does."""
    if not promises:
        return ""
    names = " and ".join(f"process {p.pid} holds {size_text(p.bytes)}" for p in promises)
    return f"Of other runs of Sapwood, {names}."


def _runs(promise: Promise) -> bool:
    try:
        return abs(psutil.Process(promise.pid).create_time() - promise.started) < 1
    except psutil.Error:
        return False
