"""The file that takes what a worker prints."""

from __future__ import annotations

import contextlib
import itertools
import os
from pathlib import Path
from typing import BinaryIO

from engine.places import log_dir

_KEPT = 4
"""Files kept: each worker has its own, and several programs may run at once."""
_TAIL = 16 * 1024
_numbers = itertools.count(1)


class WorkerLog:
    """A new file in the log directory; where that cannot be written, nothing is kept.

    Attributes:
        path: the file, or None.
    """

    def __init__(self) -> None:
        self.path: Path | None = None
        directory = log_dir()
        with contextlib.suppress(OSError):
            directory.mkdir(parents=True, exist_ok=True)
            _remove_all_but(_KEPT - 1, directory)
            path = directory / f"worker-{os.getpid()}-{next(_numbers)}.log"
            path.write_bytes(b"")
            self.path = path

    def open(self) -> BinaryIO:
        """The file, to be handed to the worker as its standard error."""
        return Path(self.path or os.devnull).open("ab")

    def tail(self) -> str:
        """The end of what the worker printed."""
        if self.path is None:
            return ""
        try:
            with self.path.open("rb") as file:
                file.seek(max(0, self.path.stat().st_size - _TAIL))
                return file.read().decode(errors="replace")
        except OSError:
            return ""


def _remove_all_but(count: int, directory: Path) -> None:
    logs = sorted(directory.glob("worker-*.log"), key=lambda path: path.stat().st_mtime)
    for path in logs[: max(0, len(logs) - count)]:
        with contextlib.suppress(OSError):
            path.unlink()
