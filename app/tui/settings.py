"""What the app remembers between two starts."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import msgspec

from app.tui.effort import Models
from engine.places import runs_dir


class Settings(msgspec.Struct, kw_only=True):
    """The user's choices; the file may be edited by hand."""

    theme: str = "sapwood-dark"
    effort: str = "think"
    models: Models = Models()
    welcomed: bool = False
    """Whether the first-run screen was seen."""
    took: dict[str, float] = {}
    """Seconds that the latest question of each kind took."""
    keys: dict[str, str] = {}
    """Other keys for commands, by the id of the command as the help screen shows it."""


def settings_path() -> Path:
    return runs_dir().parent / "settings.json"


def load_settings() -> Settings:
    """What was saved; the defaults where there is nothing, or nothing that can be read."""
    try:
        return msgspec.json.decode(settings_path().read_bytes(), type=Settings)
    except (OSError, msgspec.DecodeError):
        return Settings()


def save_settings(settings: Settings) -> None:
    """Save, all or nothing; where that cannot be done the choices last until the end."""
    path = settings_path()
    new = path.with_suffix(f".{os.getpid()}.tmp")
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        new.write_bytes(msgspec.json.format(msgspec.json.encode(settings)))
        new.replace(path)
