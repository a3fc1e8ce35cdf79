"""What crosses to and from the process that converts a checkpoint, one JSON document a line."""

from __future__ import annotations

from typing import Literal

import msgspec

from engine.protocol.events import Trouble

BodyType = Literal["f16", "q8_0", "q6_k", "q5_k_m", "q4_k_m"]


class Convert(msgspec.Struct, frozen=True, kw_only=True):
    """Convert a checkpoint into `out`, a file that is not there yet."""

    folder: str
    kind: BodyType
    out: str
    work: str
    """An empty folder on the same disk, for files that are not finished."""
    format: str | None = None
    """Of a verifier, where neither its head nor its name tells."""


class Converting(msgspec.Struct, frozen=True, tag_field="type", tag="converting"):
    """How far it is."""

    doing: Literal["writing", "quantising", "checking"]
    done: float
    """From 0 to 1, of what is being done."""


class Converted(msgspec.Struct, frozen=True, tag_field="type", tag="converted"):
    """The files are finished and in their place."""

    body: str
    bytes: int
    head: str | None
    format: str | None
    """The format of a verifier; None of a generator."""


class ConversionFailed(msgspec.Struct, frozen=True, tag_field="type", tag="failed"):
    """Nothing was put in place."""

    trouble: Trouble
    message: str
    advice: str = ""


Conversion = Converting | Converted | ConversionFailed
"""What the process tells; the last is no `Converting`."""
