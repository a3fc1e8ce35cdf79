"""Safetensors files: a length, a JSON table of tensors, and their bytes.

The file is mapped into memory, not read. The format's own package reads no bfloat16 without torch,
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

from engine.checkpoints.table import WIDTHS, read_table
from engine.errors import EngineError
from engine.protocol.events import Trouble

_FLOATS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}


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
        place = self.start + start * row * WIDTHS[self.dtype]
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
            table = read_table(file, size, path.name)
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except FileNotFoundError:
        raise EngineError(
            Trouble.MODEL, f"There is no file {path}.", "Download the checkpoint in full."
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise EngineError(Trouble.MODEL, f"{path} cannot be read: {reason}.") from None
    tensors = {
        name: MappedTensor(name, e.shape, e.dtype, path, data, table.data_start + e.data_offsets[0])
        for name, e in table.entries.items()
    }
    return SafetensorsFile(tensors, table.metadata)


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
