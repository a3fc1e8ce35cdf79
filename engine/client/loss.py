"""Saying in words why a worker process is no longer there."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass
from pathlib import Path

from engine.protocol import Trouble

_MEMORY = re.compile(r"out of memory|bad_alloc|failed to allocate", re.IGNORECASE)
_TELLING = re.compile(r"error|assert|failed|abort|exception", re.IGNORECASE)
_DUMP = re.compile(r"^Fatal Python error|^(Current )?[Tt]hread 0x", re.MULTILINE)
"""Where the interpreter's own report of a crash begins, which tells users nothing."""

_SIGNALS = {
    "SIGSEGV": "it crashed (SIGSEGV: access to memory that is not its own)",
    "SIGBUS": "it crashed (SIGBUS: a file it reads was cut short, or memory failed)",
    "SIGILL": "it crashed (SIGILL: this build needs processor features that are not there)",
    "SIGFPE": "it crashed (SIGFPE: an arithmetic error)",
    "SIGABRT": "it gave up (SIGABRT)",
    "SIGKILL": "it was killed from outside (SIGKILL)",
    "SIGTERM": "it was asked to end from outside (SIGTERM)",
}
_FROM_OUTSIDE = (-9, -15)
"""SIGKILL and SIGTERM, of which a process's own words say nothing."""
_WINDOWS = {
    0xC0000005: "it crashed (access to memory that is not its own)",
    0xC000001D: "it crashed (this build needs processor features that are not there)",
    0xC0000017: "there was not enough memory for it",
    0xC0000135: "a library it needs is missing",
    0xC0000409: "it gave up",
}


@dataclass(frozen=True, slots=True)
class Loss:
    """A worker process was lost.

    Attributes:
        trouble: `MEMORY` if memory ran out, else `ENGINE`.
        cause: a sentence without its full stop.
        started: whether the worker had come up.
        output: the file with what it printed.
    """

    trouble: Trouble
    cause: str
    started: bool = True
    output: Path | None = None


def explain(code: int, tail: str, *, memory_kills: int) -> tuple[Trouble, str]:
    """The kind and the cause of a process's end.

    Args:
        code: its return code as `subprocess` gives it: negative for a signal.
        tail: the end of what it printed.
        memory_kills: how often the system killed for want of memory while it ran.
    """
    if code == -9 and memory_kills > 0:
        return Trouble.MEMORY, "it was killed because the machine ran out of memory"
    cause = _ending(code)
    if code not in _FROM_OUTSIDE and (last := _last_words(tail)):
        cause = f"{cause}; its last words: {last}"
    out_of_memory = _MEMORY.search(tail) or code == 0xC0000017
    return Trouble.MEMORY if out_of_memory else Trouble.ENGINE, cause


def _ending(code: int) -> str:
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        return _SIGNALS.get(name, f"it was ended by {name}")
    return _WINDOWS.get(code, f"it ended by itself with exit code {code}")


def _last_words(tail: str) -> str:
    """The last line that looks like a reason, or the last line."""
    dump = _DUMP.search(tail)
    said = tail[: dump.start()] if dump else tail
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    telling = [line for line in lines if _TELLING.search(line)]
    return (telling or lines or [""])[-1][:300]
