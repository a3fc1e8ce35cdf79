"""Writing a run log."""

from __future__ import annotations

import contextlib
import os
import stat
from io import FileIO
from pathlib import Path

from engine.errors import EngineError
from engine.lock import try_lock
from engine.protocol import Trouble
from engine.service.syncer import Syncer


class RunLog:
    """An append-only file of whole lines, handed to the operating system at each write.

    What was written outlives this process at once, and a power cut a moment after `sync`.
    """

    def __init__(self, file: FileIO) -> None:
        status = os.fstat(file.fileno())
        self._file = file
        self._size = status.st_size
        self._syncer = Syncer(file.fileno()) if stat.S_ISREG(status.st_mode) else None

    @property
    def size(self) -> int:
        """Bytes in the file."""
        return self._size

    def write(self, lines: bytes) -> None:
        """Append whole lines.

        Raises:
            OSError: they cannot be written, or an earlier sync failed. The file then ends with
                its last whole line, as far as the system lets it be cut there.
        """
        self._raise_sync_error()
        done = 0
        try:
            while done < len(lines):
                done += self._file.write(lines[done:])
        except OSError:
            with contextlib.suppress(OSError):
                self.cut(self._size)
            raise
        self._size += len(lines)

    def cut(self, size: int) -> None:
        """Drop what comes after the first `size` bytes."""
        if self._syncer is not None:
            self._file.truncate(size)
        self._size = size

    def sync(self) -> None:
        """Have what was written on the disk soon, without waiting for it."""
        if self._syncer is not None:
            self._syncer.ask()

    def close(self) -> None:
        """Close the file once all of it is on the disk.

        Raises:
            OSError: it did not get there.
        """
        try:
            if self._syncer is not None:
                self._syncer.close()
                self._raise_sync_error()
        finally:
            self._file.close()

    def _raise_sync_error(self) -> None:
        if self._syncer is not None and self._syncer.error is not None:
            raise self._syncer.error


def open_log(path: str, *, resume: bool) -> RunLog:
    """Open the log at `path` for this process alone.

    Args:
        resume: go on with what the file holds; otherwise it must hold nothing.

    Raises:
        EngineError: it cannot be opened, is in use, or would be overwritten.
    """
    try:
        file = FileIO(Path(path), "ab")
    except OSError as error:
        raise EngineError(
            Trouble.STORAGE,
            f"The run log {path} cannot be written: {error.strerror or error}.",
            "Give another path for the log.",
        ) from error
    log = RunLog(file)
    try:
        if not try_lock(file):
            raise EngineError(
                Trouble.STORAGE,
                f"The run log {path} is in use by another run.",
                "Wait for that run to end, or give another path.",
            )
        if log.size and not resume:
            raise EngineError(
                Trouble.USAGE,
                f"There is already something in {path}.",
                "Resume the run it holds, or give another path; a log is never overwritten.",
            )
    except BaseException:
        log.close()
        raise
    return log
