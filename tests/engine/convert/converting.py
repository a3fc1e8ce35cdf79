"""A conversion in this process."""

from __future__ import annotations

import tempfile
from pathlib import Path

from engine.convert.convert import convert
from engine.protocol.conversion import BodyType, Convert, Converted, Converting


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
