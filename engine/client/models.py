"""The models that are known, and those that are on this machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from string import hexdigits

from engine import catalogue
from engine.catalogue import ROLES, Entry, OnHub, Preset, Role, ToConvert, source
from engine.catalogue.presets import suited
from engine.client.planning import own_device
from engine.errors import EngineError
from engine.hub import store
from engine.hub.digest import digest
from engine.hub.messages import Progress
from engine.hub.remote import look_up
from engine.memory.devices import Device
from engine.models.gguf import read_header
from engine.places import models_dir, own_catalogue, runs_dir
from engine.protocol.events import Trouble

__all__ = [
    "Model",
    "Places",
    "Preset",
    "Role",
    "State",
    "Suggestion",
    "known",
    "named",
    "places",
    "presets",
    "remove",
    "suggestion",
    "verify",
]

_READ = 1 << 20
_SHA256 = 64


class State(StrEnum):
    HERE = "here"
    PARTLY = "partly here"
    """A download was interrupted."""
    REMOTE = "to download"
    CONVERT = "to convert"
    MISSING = "missing"
    """It is to be had by other means, and was not."""


@dataclass(frozen=True, slots=True)
class Model:
    """A model of the catalogue."""

    id: str
    role: Role
    state: State
    bytes: int | None
    """Size of what is on this machine; None where nothing is."""
    path: Path | None
    """Its file, where it is whole."""
    entry: Entry

    @property
    def repository(self) -> str:
        """Its repository on the hub; empty where it has none."""
        origin = source(self.entry.file)
        return origin.repository if isinstance(origin, OnHub | ToConvert) else ""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What suits this machine, by the memory that is free on it now."""

    device: Device
    name: str
    preset: Preset


@dataclass(frozen=True, slots=True)
class Places:
    models: Path
    """What Sapwood downloads."""
    cache: Path
    """What other programs have downloaded, which is used as it is."""
    catalogue: Path
    """Entries of the user's own."""
    runs: Path
    """Logs of runs."""


def known() -> list[Model]:
    """All models of the catalogue, the user's own included.

    Raises:
        EngineError: a catalogue file has a mistake.
    """
    loaded = catalogue.load()
    return [_model(id, role, entry) for role in ROLES for id, entry in loaded.entries(role).items()]


def named(id: str) -> list[Model]:
    """The models of an id: one, or a generator and a verifier.

    Raises:
        EngineError: there is none.
    """
    found = [model for model in known() if model.id == id]
    if not found:
        ids = ", ".join(dict.fromkeys(model.id for model in known()))
        raise EngineError(
            Trouble.USAGE, f"There is no model '{id}' in the catalogue.", f"It has {ids}."
        )
    return found


def suggestion() -> Suggestion | None:
    """The preset for this machine as it is now; None where too little is free for any."""
    device, _ = own_device()
    found = suited(catalogue.load(), device)
    return None if found is None else Suggestion(device, *found)


def presets() -> tuple[Device, dict[str, Preset]]:
    """This machine's device, and what is meant for devices of its kind, by name."""
    device, _ = own_device()
    all_presets = catalogue.load().presets.items()
    return device, {name: preset for name, preset in all_presets if preset.device is device.kind}


def places() -> Places:
    return Places(models_dir(), store.cache_dir(), own_catalogue(), runs_dir())


def verify(model: Model, tell: Callable[[Progress], None]) -> str:
    """Compare a model's file with the hub's checksum, bit for bit.

    Args:
        tell: called as it goes on; what it raises ends it.

    Returns:
        What was found of it.

    Raises:
        EngineError: the file is not here, is damaged, or is not what the hub has.
    """
    if model.path is None:
        raise EngineError(Trouble.MODEL, f"The model '{model.id}' is not on this machine.")
    size = model.path.stat().st_size
    read_header(model.path)
    checksum, word = _expected(model, model.path)
    computed = digest(checksum, size)
    if computed is None:
        return "whole by its header; no checksum of it is known"
    with model.path.open("rb") as file:
        done = 0
        while chunk := file.read(_READ):
            computed.update(chunk)
            done += len(chunk)
            tell(Progress(model.path.name, done, size))
    if computed.hexdigest() != checksum:
        raise EngineError(
            Trouble.MODEL,
            f"{model.path} is damaged: its checksum is not {word}.",
            f"{_remedy(model, model.path)}, and pull it again.",
        )
    return f"the bytes of the checksum {checksum}"


def remove(model: Model) -> int:
    """Delete what Sapwood downloaded of a model, whole or in part.

    Returns:
        Bytes that are free now.

    Raises:
        EngineError: it is not Sapwood's to delete, or it cannot be deleted.
    """
    match source(model.entry.file):
        case OnHub(repository, file):
            files = [file]
        case ToConvert(repository):
            files = store.fetched_files(repository)
        case _:
            raise _not_ours(model)
    try:
        freed = sum(store.remove(repository, file) for file in files)
    except OSError as error:
        raise EngineError(
            Trouble.STORAGE, f"'{model.id}' cannot be deleted: {error.strerror}."
        ) from None
    if not freed and model.path is not None:
        raise _not_ours(model)
    return freed


def _model(id: str, role: Role, entry: Entry) -> Model:
    path = catalogue.find(entry)
    if path is not None:
        try:
            return Model(id, role, State.HERE, path.stat().st_size, path, entry)
        except OSError:
            return Model(id, role, State.MISSING, None, None, entry)
    match source(entry.file):
        case OnHub(repository, file):
            part = store.partial(repository, file)
            if part.is_file():
                return Model(id, role, State.PARTLY, part.stat().st_size, None, entry)
            return Model(id, role, State.REMOTE, None, None, entry)
        case ToConvert(repository):
            return Model(id, role, State.CONVERT, _weights(repository), None, entry)
        case _:
            return Model(id, role, State.MISSING, None, None, entry)


def _weights(repository: str) -> int | None:
    """Bytes of what is here of a checkpoint."""
    files = [store.stored(repository, file) for file in store.fetched_files(repository)]
    return sum(file.stat().st_size for file in files if file.is_file()) or None


def _expected(model: Model, path: Path) -> tuple[str, str]:
    """The checksum a file must have, and whose word that is; empty where there is none."""
    origin = store.origin(path)
    if origin is not None:
        return origin.checksum, "the one the hub gave"
    blob = path.resolve().name
    if len(blob) == _SHA256 and not set(blob) - set(hexdigits):
        return blob, "the one its cache calls it by"
    place = source(model.entry.file)
    if isinstance(place, OnHub):
        return look_up(place.repository, place.file).checksum, "the one the hub gives"
    return "", ""


def _remedy(model: Model, path: Path) -> str:
    own = store.origin(path) is not None
    return f"Remove it with 'sapwood models remove {model.id}'" if own else "Delete it"


def _not_ours(model: Model) -> EngineError:
    where = f"Its file is {model.path}." if model.path else ""
    return EngineError(
        Trouble.USAGE, f"'{model.id}' is not among Sapwood's downloads: it stays.", where
    )
