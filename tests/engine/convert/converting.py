"""A conversion in this process."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from engine.convert.convert import convert
from engine.protocol.conversion import BodyType, Convert, Converted, Converting

if TYPE_CHECKING:
    from tests.engine.checkpoints import Family


class Bodies(Protocol):
    """Gives the file made from a family's checkpoint, made once in a session."""

    def __call__(self, family: Family, kind: BodyType = "f16") -> Path: ...


def converted(
    folder: Path,
    out: Path,
    kind: BodyType = "f16",
    *,
    format: str | None = None,
    told: list[Converting] | None = None,
) -> Converted:
    with tempfile.TemporaryDirectory(dir=out.parent) as work:
        order = Convert(folder=str(folder), kind=kind, out=str(out), work=work, format=format)
        return convert(order, (told if told is not None else []).append)
