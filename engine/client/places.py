"""Where the engine keeps files of its own.

All of it is under the directory that the environment variable `SAPWOOD_HOME` names, if it is
set, and otherwise where the system keeps such files for the user.
"""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

_APP = "sapwood"


def runs_dir() -> Path:
    """Run logs that were not given a path."""
    home = _home()
    return home / "runs" if home else Path(platformdirs.user_data_dir(_APP, False)) / "runs"


def log_dir() -> Path:
    """What workers print, for finding out why one was lost."""
    home = _home()
    return home / "log" if home else Path(platformdirs.user_log_dir(_APP, False))


def _home() -> Path | None:
    home = os.environ.get("SAPWOOD_HOME")
    return Path(home) if home else None
