"""Where Sapwood keeps files of its own.

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
    return _data() / "runs"


def models_dir() -> Path:
    """Models that were downloaded."""
    return _data() / "models"


def converted_dir() -> Path:
    """Models that were converted here."""
    return models_dir() / "converted"


def log_dir() -> Path:
    """What workers print, for finding out why one was lost."""
    home = _home()
    return home / "log" if home else Path(platformdirs.user_log_dir(_APP, False))


def own_catalogue() -> Path:
    """The user's own entries of the catalogue of models."""
    home = _home()
    folder = home or Path(platformdirs.user_config_dir(_APP, False))
    return folder / "models.toml"


def _data() -> Path:
    return _home() or Path(platformdirs.user_data_dir(_APP, False))


def _home() -> Path | None:
    home = os.environ.get("SAPWOOD_HOME")
    return Path(home) if home else None
