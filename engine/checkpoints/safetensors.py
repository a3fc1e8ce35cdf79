"""Safetensors files: a length, a JSON table of tensors, and their bytes.

The file is mapped into memory, not read, and nothing that its table says is believed before it was
checked against the size of the file. The format's own package reads no bfloat16 without torch,
which is what nearly every checkpoint is made of.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from engine.errors import EngineError
from engine.protocol.events import Trouble

_WIDTHS = {
    "F64": 8, "F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1, "BOOL": 1,
    "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U64": 8, "U32": 4, "U16": 2, "U8": 1,
}  # fmt: skip
_FLOATS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
_LONGEST_TABLE = 100_000_000


class _Entry(msgspec.Struct, frozen=True):
    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]


@dataclass(frozen=True, slots=True)
class MappedTensor:
    """Implements `StoredTensor` on a mapped file."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    file: Path
    data: Any
    """The mapped file."""
    start: int
    """Where in the file its bytes begin."""

    def rows(self, start: int, stop: int) -> np.ndarray:
        layout = _FLOATS.get(self.dtype)
        if layout is None:
            raise EngineError(
                Trouble.MODEL,
                f"The tensor {self.name} of {self.file.name} is of type {self.dtype}, which holds "
                "no plain weights.",
                "Take a checkpoint in 16 or 32 bit floats.",
            )
        row = prod(self.shape[1:])
        place = self.start + start * row * _WIDTHS[self.dtype]
        raw = np.frombuffer(self.data, layout, (stop - start) * row, place)
        if self.dtype == "BF16":  # the upper half of a float32
            found = (raw.astype(np.uint32) << 16).view(np.float32)
        else:
            found = raw.astype(np.float32)
        return found.reshape((stop - start, *self.shape[1:]))


@dataclass(frozen=True, slots=True)
class SafetensorsFile:
    """An open file; its tensors stay readable as long as one of them is held."""

    tensors: dict[str, MappedTensor]
    metadata: dict[str, str]


def open_safetensors(path: Path) -> SafetensorsFile:
    """Map a file and check its table.

    Raises:
        EngineError: it is missing, cut short, or its table does not describe its bytes.
    """
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            table = _table_length(file.read(8), size, path)
            raw = file.read(table)
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except FileNotFoundError:
        raise EngineError(
            Trouble.MODEL, f"There is no file {path}.", "Download the checkpoint in full."
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise EngineError(Trouble.MODEL, f"{path} cannot be read: {reason}.") from None
    try:
        entries = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
        about = entries.pop("__metadata__", None)
        metadata = msgspec.json.decode(about, type=dict[str, str]) if about else {}
        found = {name: msgspec.json.decode(e, type=_Entry) for name, e in entries.items()}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise _damaged(path, "its table of tensors cannot be read") from None
    start = 8 + table
    for name, entry in found.items():
        _check(name, entry, size - start, path)
    tensors = {
        name: MappedTensor(name, e.shape, e.dtype, path, data, start + e.data_offsets[0])
        for name, e in found.items()
    }
    return SafetensorsFile(tensors, metadata)


def write_safetensors(
    path: Path, tensors: Mapping[str, np.ndarray], metadata: Mapping[str, str]
) -> None:
    """Write tensors as float32.

    Raises:
        OSError: the file cannot be written.
    """
    arrays = {name: np.ascontiguousarray(array, "<f4") for name, array in tensors.items()}
    table: dict[str, object] = {"__metadata__": dict(metadata)}
    place = 0
    for name, array in arrays.items():
        end = place + array.nbytes
        table[name] = {"dtype": "F32", "shape": array.shape, "data_offsets": (place, end)}
        place = end
    head = msgspec.json.encode(table)
    head += b" " * (-len(head) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(head)) + head)
        for array in arrays.values():
            file.write(array.tobytes())


def _table_length(first: bytes, size: int, path: Path) -> int:
    if len(first) < 8:
        raise _damaged(path, f"it has only {size:,} bytes")
    (length,) = struct.unpack("<Q", first)
    if length > _LONGEST_TABLE or 8 + length > size:
        raise _damaged(path, f"its table would take {length:,} bytes of {size:,}")
    return length


def _check(name: str, entry: _Entry, room: int, path: Path) -> None:
    begin, end = entry.data_offsets
    width = _WIDTHS.get(entry.dtype)
    if width is None:
        raise _damaged(path, f"the tensor {name} is of the unknown type {entry.dtype}")
    if any(extent < 0 for extent in entry.shape) or not 0 <= begin <= end:
        raise _damaged(path, f"the tensor {name} has an impossible shape or place")
    if end > room:
        raise _damaged(path, f"the tensor {name} ends {end - room:,} bytes after the file does")
    if end - begin != prod(entry.shape) * width:
        raise _damaged(path, f"the tensor {name} has not as many bytes as its shape needs")


def _damaged(path: Path, reason: str) -> EngineError:
    return EngineError(
        Trouble.MODEL, f"{path.name} is cut short or damaged: {reason}.", "Download it again."
    )
