"""Where the file of a model comes from.

seedling:PART              shipped with Sapwood
package:MODULE/FILE        carried by a Python package
hub:OWNER/NAME/FILE        to be downloaded from the model hub
convert:OWNER/NAME         weights on the hub that have to be converted first
anything else              a path; `~` is the home folder
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Seedling:
    part: str


@dataclass(frozen=True, slots=True)
class Package:
    module: str
    file: str


@dataclass(frozen=True, slots=True)
class OnHub:
    repository: str
    """OWNER/NAME."""
    file: str
    """Path in the repository."""


@dataclass(frozen=True, slots=True)
class ToConvert:
    repository: str


@dataclass(frozen=True, slots=True)
class Local:
    path: Path


Source = Seedling | Package | OnHub | ToConvert | Local


def source(file: str) -> Source:
    """Read the `file` of an entry.

    Raises:
        ValueError: it is none of these.
    """
    scheme, colon, place = file.partition(":")
    parts = place.split("/")
    match scheme if colon else "":
        case "seedling":
            if place in ("generator", "target", "verifier"):
                return Seedling(place)
            raise ValueError(
                f"'{file}' is not seedling:generator, seedling:target or seedling:verifier"
            )
        case "package":
            if len(parts) == 2 and all(parts):
                return Package(*parts)
            raise ValueError(f"'{file}' is not package:MODULE/FILE")
        case "hub":
            if len(parts) >= 3 and _plain(parts):
                return OnHub("/".join(parts[:2]), "/".join(parts[2:]))
            raise ValueError(f"'{file}' is not hub:OWNER/NAME/FILE")
        case "convert":
            if len(parts) == 2 and _plain(parts):
                return ToConvert(place)
            raise ValueError(f"'{file}' is not convert:OWNER/NAME")
        case _ if file:
            return Local(Path(file))
        case _:
            raise ValueError("a file is expected")


def _plain(parts: list[str]) -> bool:
    """Whether no part leads elsewhere when they become folders."""
    return all(part not in ("", ".", "..") and not set(part) & set('\\:*?"<>|') for part in parts)
