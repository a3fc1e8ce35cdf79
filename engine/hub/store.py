"""Files of the hub that are on this machine: fetched by Sapwood, or by others into their cache."""

from __future__ import annotations

import glob
import os
import shutil
from pathlib import Path

import msgspec

from engine.places import models_dir

_ORIGIN = ".origin.json"
_PARTIAL = ".partial"
"""Folder of what is not whole yet; on the same volume, so that placing is a rename."""


class Origin(msgspec.Struct, frozen=True):
    """What the hub said of a file when it was fetched; kept beside it."""

    repository: str
    file: str
    commit: str
    size: int
    checksum: str
    """SHA-256 or git's SHA-1 in hexadecimal; empty where the hub has none."""

    def continues(self, other: Origin) -> bool:
        """Whether it is the same file, be it of another commit."""
        if (self.size, self.checksum) != (other.size, other.checksum):
            return False
        return bool(self.checksum) or self.commit == other.commit


def stored(repository: str, file: str) -> Path:
    """Where Sapwood keeps a file of the hub."""
    return models_dir() / repository / file


def find(repository: str, file: str) -> Path | None:
    """A file of the hub that is whole and on this machine."""
    own = stored(repository, file)
    return own if own.is_file() else _in_cache(repository, file)


def origin(path: Path) -> Origin | None:
    """What is known of a file that Sapwood fetched."""
    try:
        return msgspec.json.decode(_origin_file(path).read_bytes(), type=Origin)
    except (OSError, msgspec.DecodeError):
        return None


def partial(repository: str, file: str) -> Path:
    """Where a file is while it is fetched."""
    return models_dir() / _PARTIAL / f"{repository}/{file}".replace("/", "--")


def mark(part: Path) -> Path:
    """Beside what is not whole yet: the hub's word for what it is to become."""
    return part.with_name(part.name + ".json")


def lock(part: Path) -> Path:
    """Beside what is not whole yet: held by the one process that writes."""
    return part.with_name(part.name + ".lock")


def place(part: Path, of: Origin) -> Path:
    """Move what is whole and checked to where it is used, at once or not at all.

    Raises:
        OSError: it cannot be moved.
    """
    path = stored(of.repository, of.file)
    path.parent.mkdir(parents=True, exist_ok=True)
    _origin_file(path).write_bytes(msgspec.json.encode(of))
    part.replace(path)
    return path


def adopt(found: Path, repository: str, file: str) -> None:
    """Have a file of another program's cache among one's own too, without a copy if possible.

    Raises:
        OSError: it cannot be put there.
    """
    path, part = stored(repository, file), partial(repository, file)
    path.parent.mkdir(parents=True, exist_ok=True)
    part.unlink(missing_ok=True)
    try:
        os.link(found.resolve(), part)
    except OSError:  # on another volume
        shutil.copyfile(found, part)
    part.replace(path)


def remove(repository: str, file: str) -> int:
    """Delete what Sapwood has of a file, whole or in part. Other programs' caches stay.

    Returns:
        Bytes that were freed.

    Raises:
        OSError: it cannot be deleted.
    """
    path, part = stored(repository, file), partial(repository, file)
    freed = sum(found.stat().st_size for found in (path, part) if found.is_file())
    for found in (path, part, mark(part), _origin_file(path)):
        found.unlink(missing_ok=True)
    for folder in (path.parent, *path.parent.parents):
        if folder == models_dir() or not folder.is_dir() or any(folder.iterdir()):
            break
        folder.rmdir()
    return freed


def fetched_files(repository: str) -> list[str]:
    """The files that Sapwood has of a repository, whole or in part."""
    folder = stored(repository, "")
    whole = [p.name for p in folder.glob("*") if p.is_file() and not p.name.endswith(_ORIGIN)]
    prefix = partial(repository, "").name
    parts = [p.name for p in partial(repository, "").parent.glob(f"{glob.escape(prefix)}*")]
    begun = [name.removeprefix(prefix) for name in parts if not name.endswith((".json", ".lock"))]
    return sorted({*whole, *begun})


def cache_dir() -> Path:
    """The cache that huggingface_hub and the programs built on it share."""
    if folder := os.environ.get("HF_HUB_CACHE"):
        return Path(folder).expanduser()
    home = os.environ.get("HF_HOME")
    shared = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache"), "huggingface")
    return (shared if home is None else Path(home)).expanduser() / "hub"


def _in_cache(repository: str, file: str) -> Path | None:
    """The file in the shared cache, of the commit that `main` was when it was last looked at.

    Files appear in a snapshot only once they are whole.
    """
    folder = cache_dir() / f"models--{repository.replace('/', '--')}"
    try:
        commit = (folder / "refs" / "main").read_text("utf-8").strip()
        path = folder / "snapshots" / commit / file
        return path if path.is_file() else None
    except (OSError, ValueError):
        return None


def _origin_file(path: Path) -> Path:
    return path.with_name(path.name + _ORIGIN)
