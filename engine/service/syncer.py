"""Getting a file onto the disk without waiting for it."""

from __future__ import annotations

import os
import threading


class Syncer:
    """Syncs a file in a thread of its own: a busy disk takes from one to hundreds of milliseconds
    for it, which would otherwise come out of the search.

    Args:
        descriptor: the open file.
        interval: least seconds from one sync to the next.
    """

    def __init__(self, descriptor: int, interval: float = 0.05) -> None:
        self.error: OSError | None = None
        """Why a sync failed; nothing is synced after that."""
        self._descriptor = descriptor
        self._interval = interval
        self._asked = threading.Event()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._work, name="log sync", daemon=True)
        self._thread.start()

    def ask(self) -> None:
        """Have what was written so far on the disk soon."""
        self._asked.set()

    def close(self) -> None:
        """Have all of it there now, and stop."""
        self._closing.set()
        self._asked.set()
        self._thread.join()

    def _work(self) -> None:
        while self.error is None:
            self._asked.wait()
            self._asked.clear()
            last = self._closing.is_set()
            try:
                os.fsync(self._descriptor)
            except OSError as error:
                self.error = error
            if last:
                return
            self._closing.wait(self._interval)
