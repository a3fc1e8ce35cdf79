"""What `models.toml` may say."""

from __future__ import annotations

from typing import Literal

import msgspec

from engine.errors import EngineError
from engine.memory.devices import Kind
from engine.memory.estimate import CacheType
from engine.memory.options import DEFAULT_CONTEXT, Strategy
from engine.protocol.events import Trouble
from engine.verify.formats import PrmFormat
from engine.verify.generative import CritiqueFormat

Role = Literal["generator", "verifier"]
ROLES: tuple[Role, ...] = ("generator", "verifier")
_ANY_REASONER = "thinkprm"
"""Its questions are in plain words."""


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model of the catalogue."""

    file: str
    """Where its file is; `engine.catalogue.sources` reads it."""
    licence: str = ""
    about: str = ""
    family: str = ""
    """Architecture, in the words of GGUF."""
    context: int | None = None
    """Tokens of the longest path it is good for."""
    format: str | None = None
    """Key of `[formats]`, of a verifier."""
    package: str | None = None
    """Name of the package to install for a `package:` file."""


class Preset(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What to run on a class of machines."""

    device: Kind
    free: str
    """Memory that is free at the least, as a size such as `7G`."""
    generator: str
    verifier: str | None = None
    cache: CacheType = CacheType.F16
    n: int = 8
    width: int = 4
    context: int = DEFAULT_CONTEXT
    strategy: Strategy = Strategy.COLLOCATED
    """How the two are expected to share that memory. It is not asked for: the plan of a run takes
    the quickest way that fits, which with more memory is another."""


class Catalogue(msgspec.Struct, frozen=True):
    """The content of `models.toml`, with the user's own entries."""

    generators: dict[str, Entry] = {}
    verifiers: dict[str, Entry] = {}
    formats: dict[str, PrmFormat] = {}
    critiques: dict[str, CritiqueFormat] = {}
    presets: dict[str, Preset] = {}

    def entries(self, role: Role) -> dict[str, Entry]:
        return self.generators if role == "generator" else self.verifiers

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

    def critique(self, model: str) -> CritiqueFormat:
        """How a model of that name is asked to judge: as its like, or as any reasoner can be."""
        known = (name for name in self.critiques if name in model.lower())
        name = next(known, _ANY_REASONER)
        return msgspec.structs.replace(self.critiques[name], name=name)
