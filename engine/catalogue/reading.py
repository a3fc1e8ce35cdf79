"""The catalogue as it is read: what is shipped, extended and overridden by the user's own file."""

from __future__ import annotations

import re
import tomllib
from functools import lru_cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import msgspec

from engine.catalogue.positions import Keys, line_of
from engine.catalogue.schema import Catalogue, Entry, Preset
from engine.catalogue.sources import source
from engine.errors import EngineError
from engine.memory.sizes import parse_size
from engine.places import own_catalogue
from engine.protocol.events import Trouble
from engine.verify.formats import PrmFormat
from engine.verify.generative import CritiqueFormat

_SECTIONS = {
    "generators": Entry,
    "verifiers": Entry,
    "formats": PrmFormat,
    "critiques": CritiqueFormat,
    "presets": Preset,
}
_FIELD = re.compile(r"field `(\w+)`|at `\$\.(\w+)")

Tables = dict[str, dict[str, dict[str, Any]]]


class _File(msgspec.Struct, frozen=True):
    """One catalogue file: its name, its text and its tables."""

    path: Path | Traversable
    text: str = ""
    tables: Tables = {}

    def mistake(self, keys: Keys, what: str) -> EngineError:
        line = line_of(self.text, keys)
        where = f", line {line}" if line else ""
        return EngineError(
            Trouble.USAGE, f"{self.path}{where}: {'.'.join(keys)}: {what}.", "Correct the file."
        )


def load() -> Catalogue:
    """The catalogue; read again when the user's file has changed.

    Raises:
        EngineError: a file has a mistake; the message names the file, the line and the key.
    """
    path = own_catalogue()
    try:
        about = path.stat()
    except OSError:
        return _load(None, 0, 0)
    return _load(path, about.st_mtime_ns, about.st_size)


@lru_cache(maxsize=4)
def _load(own: Path | None, changed: int, size: int) -> Catalogue:
    shipped = _read(_shipped())
    if own is None:
        return _checked(shipped, _File(_shipped()))
    return _checked(shipped, _read(own))


def _shipped() -> Path | Traversable:
    path = resources.files("engine") / "models.toml"
    if not path.is_file():  # a checkout, where the catalogue stands at the top
        path = Path(__file__).parents[2] / "models.toml"
    return path


def _read(path: Path | Traversable) -> _File:
    try:
        text = path.read_text("utf-8-sig")
        tables = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # no TOML, or no text, or absurdly deep
        raise EngineError(
            Trouble.USAGE, f"{path} is not TOML: {error}.", "Correct the file."
        ) from None
    except OSError as error:
        raise EngineError(Trouble.USAGE, f"{path} cannot be read: {error.strerror}.") from None
    file = _File(path, text, tables)
    for section, entries in tables.items():
        if section not in _SECTIONS:
            raise file.mistake((section,), f"there are only {', '.join(_SECTIONS)}")
        if not isinstance(entries, dict):
            raise file.mistake((section,), "a table is expected")
        for id, entry in entries.items():
            if not isinstance(entry, dict):
                raise file.mistake((section, id), "a table is expected")
    return file


def _checked(shipped: _File, own: _File) -> Catalogue:
    """Both as one; an own entry changes the keys it has of the shipped one of the same id."""
    sections: dict[str, dict[str, Any]] = {}
    for section, kind in _SECTIONS.items():
        ours, theirs = shipped.tables.get(section, {}), own.tables.get(section, {})
        sections[section] = {
            id: _entry(
                own if id in theirs else shipped,
                (section, id),
                ours.get(id, {}) | theirs.get(id, {}),
                kind,
            )
            for id in ours | theirs
        }
    catalogue = Catalogue(**sections)
    for section in ("generators", "verifiers", "presets"):
        for id, entry in sections[section].items():
            wrong = _unmet(catalogue, entry)
            if wrong:
                file = own if id in own.tables.get(section, {}) else shipped
                raise file.mistake((section, id, wrong[0]), wrong[1])
    return catalogue


def _entry(file: _File, keys: Keys, table: dict[str, Any], kind: type) -> object:
    try:
        return msgspec.convert(table, kind)
    except msgspec.ValidationError as error:
        named = _FIELD.search(str(error))
        field = next(filter(None, named.groups()), "") if named else ""
        what = re.sub(r" - at `.*`$", "", str(error))
        raise file.mistake((*keys, field) if field in table else keys, what) from None


def _unmet(catalogue: Catalogue, entry: Entry | Preset) -> tuple[str, str] | None:
    """The first key that names something which is not there, and what is wrong with it."""
    if isinstance(entry, Entry):
        try:
            source(entry.file)
        except ValueError as error:
            return "file", str(error)
        if entry.format is not None and entry.format not in catalogue.formats:
            return "format", f"there is no format '{entry.format}'"
        return None
    if entry.generator not in catalogue.generators:
        return "generator", f"there is no generator '{entry.generator}'"
    if entry.verifier is not None and entry.verifier not in catalogue.verifiers:
        return "verifier", f"there is no verifier '{entry.verifier}'"
    try:
        parse_size(entry.free)
    except ValueError as error:
        return "free", str(error)
    return None
