"""One writer a file, on each system by its own means."""

from __future__ import annotations

import os
import sys
from io import FileIO

if sys.platform == "win32":
    import msvcrt

    _FAR = 2**31 - 2
    """Windows keeps readers out of a locked range, so one byte that no log reaches is locked."""

    def try_lock(file: FileIO) -> bool:
        """Lock `file` until it is closed or this process ends; False if another has it."""
        try:
            os.lseek(file.fileno(), _FAR, os.SEEK_SET)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def try_lock(file: FileIO) -> bool:
        """Lock `file` until it is closed or this process ends; False if another has it.

        A file system without locks is taken as it is.
        """
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return True
        return True
