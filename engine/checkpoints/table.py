"""The table at the beginning of a safetensors file: which tensors it has, and where.

Nothing that it says is believed before it was checked against the size of the file.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from math import prod
from typing import Protocol

import msgspec

from engine.errors import EngineError
from engine.protocol.events import Trouble

WIDTHS = {
    "F64": 8, "F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1, "BOOL": 1,
    "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U64": 8, "U32": 4, "U16": 2, "U8": 1,
}  # fmt: skip
"""Bytes of one value, by its type."""
_LONGEST = 100_000_000


class Entry(msgspec.Struct, frozen=True):
    """One tensor; its offsets are from where the table ends."""

    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Table:
    entries: dict[str, Entry]
    metadata: dict[str, str]
    data_start: int
    """Where in the file the tensors begin."""


class Readable(Protocol):
    def read(self, count: int, /) -> bytes: ...


def read_table(file: Readable, size: int, name: str) -> Table:
    """Read and check a table from the beginning of a file.

    Args:
        size: bytes of the whole file, whether or not they can all be read here.

    Raises:
        EngineError: the file is cut short, or its table does not describe its bytes.
    """
    first = file.read(8)
    if len(first) < 8:
        raise damaged(name, f"it has only {size:,} bytes")
    (length,) = struct.unpack("<Q", first)
    if length > _LONGEST or 8 + length > size:
        raise damaged(name, f"its table would take {length:,} bytes of {size:,}")
    try:
        entries = msgspec.json.decode(file.read(length), type=dict[str, msgspec.Raw])
        about = entries.pop("__metadata__", None)
        metadata = msgspec.json.decode(about, type=dict[str, str]) if about else {}
        found = {name: msgspec.json.decode(e, type=Entry) for name, e in entries.items()}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise damaged(name, "its table of tensors cannot be read") from None
    for tensor, entry in found.items():
        _check(tensor, entry, size - 8 - length, name)
    return Table(found, metadata, 8 + length)


def damaged(name: str, reason: str) -> EngineError:
    return EngineError(
        Trouble.MODEL, f"{name} is cut short or damaged: {reason}.", "Download it again."
    )


def _check(tensor: str, entry: Entry, room: int, name: str) -> None:
    begin, end = entry.data_offsets
    width = WIDTHS.get(entry.dtype)
    if width is None:
        raise damaged(name, f"the tensor {tensor} is of the unknown type {entry.dtype}")
    if any(extent < 0 for extent in entry.shape) or not 0 <= begin <= end:
        raise damaged(name, f"the tensor {tensor} has an impossible shape or place")
    if end > room:
        raise damaged(name, f"the tensor {tensor} ends {end - room:,} bytes after the file does")
    if end - begin != prod(entry.shape) * width:
        raise damaged(name, f"the tensor {tensor} has not as many bytes as its shape needs")
