"""Logs of runs that asked for none, kept only so that a lost worker's run can be resumed."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

from engine.places import runs_dir

_PREFIX = "unsaved-"
_DAYS = 14
"""How long the log of a run stays whose program was killed."""


def new_log(run: str) -> str | None:
    """A path for the log of `run`; None where the user's directory cannot be written."""
    path = runs_dir() / f"{_PREFIX}{run}.jsonl"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(exist_ok=False)
    except OSError:
        return None
    return str(path)


def remove_log(path: str) -> None:
    with contextlib.suppress(OSError):
        Path(path).unlink()


def remove_old_logs() -> None:
    """Remove what programs left behind that were killed long ago."""
    oldest = time.time() - _DAYS * 24 * 3600
    for path in runs_dir().glob(f"{_PREFIX}*.jsonl"):
        with contextlib.suppress(OSError):
            if path.stat().st_mtime < oldest:
                path.unlink()
