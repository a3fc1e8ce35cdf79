"""Standard error to a file while the app has the screen."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def stderr_guard(log: Path) -> Iterator[None]:
    """Within the block, whatever writes to file descriptor 2 writes to `log`.

    Native code and child processes would otherwise write over the picture. On POSIX Textual draws
    through `sys.__stderr__`, which therefore keeps the terminal under a descriptor of its own.
    """
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    except OSError:
        target = os.open(os.devnull, os.O_WRONLY)
    screen, before, python = os.dup(2), sys.__stderr__, sys.stderr
    file = os.fdopen(screen, "w", encoding="utf-8", errors="replace", closefd=False)
    os.dup2(target, 2)
    os.close(target)
    sys.__stderr__ = file  # type: ignore[misc]
    try:
        yield
    finally:
        file.flush()
        os.dup2(screen, 2)
        os.close(screen)
        sys.__stderr__ = before  # type: ignore[misc]
        sys.stderr = python
