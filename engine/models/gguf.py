"""The header of a GGUF file: metadata and the table of tensors, read without loading weights.

Long arrays (token lists and the like) are skipped and only counted, so that a header with a
vocabulary of 150,000 entries is read in well under a second.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from engine.errors import EngineError
from engine.protocol.events import Trouble

_SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q",
            11: "<q", 12: "<d"}  # fmt: skip
_STRING, _ARRAY = 8, 9

# ggml type id: (elements a block, bytes a block)
_BLOCKS = {
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34),
    9: (32, 36), 10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210),
    15: (256, 292), 24: (1, 1), 25: (1, 2), 26: (1, 4), 27: (1, 8), 28: (1, 8), 30: (1, 2),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Tensor:
    name: str
    shape: tuple[int, ...]
    kind: int
    """ggml type id."""
    offset: int
    """Bytes from the start of the data section."""

    @property
    def nbytes(self) -> int | None:
        """Size in bytes; None for a quantisation this reader does not know."""
        if self.kind not in _BLOCKS:
            return None
        elements, size = _BLOCKS[self.kind]
        count = 1
        for extent in self.shape:
            count *= extent
        return count // elements * size


@dataclass(frozen=True, slots=True)
class Header:
    metadata: dict[str, object]
    """Scalars and strings by key; an array appears as its length."""
    tensors: tuple[Tensor, ...]
    data_start: int

    def text(self, key: str, default: str = "") -> str:
        value = self.metadata.get(key, default)
        return value if isinstance(value, str) else default

    def number(self, key: str, default: int = 0) -> int:
        value = self.metadata.get(key, default)
        return int(value) if isinstance(value, int | float) else default


def read_header(path: Path) -> Header:
    """Read and check the header of a model file.

    Raises:
        EngineError: the file is missing, not a GGUF, or cut short.
    """
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            header = _parse(file, path)
    except FileNotFoundError:
        raise EngineError(
            Trouble.MODEL, f"There is no model file {path}.", "Check the path."
        ) from None
    except IsADirectoryError:
        raise EngineError(
            Trouble.MODEL, f"{path} is a folder, not a model file.", "Name a .gguf file."
        ) from None
    except OSError as error:
        raise EngineError(
            Trouble.MODEL, f"The model file {path} cannot be read: {error.strerror}."
        ) from None
    except (struct.error, EOFError, UnicodeDecodeError, KeyError, MemoryError):
        raise _cut_short(path, size) from None
    ends = [t.offset + t.nbytes for t in header.tensors if t.nbytes is not None]
    if ends and header.data_start + max(ends) > size:
        raise _cut_short(path, size, header.data_start + max(ends))
    return header


def _cut_short(path: Path, size: int, expected: int | None = None) -> EngineError:
    tells = f", its header tells of {expected:,}" if expected else " and its header is not whole"
    return EngineError(
        Trouble.MODEL,
        f"{path.name} is cut short or damaged: it has {size:,} bytes{tells}.",
        "Download it again.",
    )


def _parse(file: BinaryIO, path: Path) -> Header:
    if file.read(4) != b"GGUF":
        raise EngineError(
            Trouble.MODEL,
            f"{path.name} is not a GGUF model file.",
            "Sapwood reads models in the GGUF format; choose a file that ends in .gguf.",
        )
    version, tensor_count, key_count = _read(file, "<IQQ")
    if version not in (2, 3) or tensor_count > 1 << 20 or key_count > 1 << 20:
        raise EOFError
    metadata = {}
    for _ in range(key_count):
        key = _string(file)
        (kind,) = _read(file, "<I")
        metadata[key] = _value(file, kind)
    tensors = []
    for _ in range(tensor_count):
        name = _string(file)
        (dimensions,) = _read(file, "<I")
        shape = _read(file, f"<{min(dimensions, 8)}Q")
        kind, offset = _read(file, "<IQ")
        tensors.append(Tensor(name, shape, kind, offset))
    alignment = int(metadata.get("general.alignment", 32)) or 32
    start = -(-file.tell() // alignment) * alignment
    return Header(metadata, tuple(tensors), start)


def _read(file: BinaryIO, layout: str) -> tuple:
    size = struct.calcsize(layout)
    data = file.read(size)
    if len(data) < size:
        raise EOFError
    return struct.unpack(layout, data)


def _bytes(file: BinaryIO) -> bytes:
    (length,) = _read(file, "<Q")
    if length > 1 << 26:
        raise EOFError
    data = file.read(length)
    if len(data) < length:
        raise EOFError
    return data


def _string(file: BinaryIO) -> str:
    return _bytes(file).decode()


def _value(file: BinaryIO, kind: int) -> object:
    if kind == _STRING:
        return _bytes(file).decode(errors="replace")
    if kind != _ARRAY:
        return _read(file, _SCALARS[kind])[0]
    inner, count = _read(file, "<IQ")
    if inner == _STRING:
        for _ in range(count):
            _bytes(file)
    elif inner == _ARRAY:
        for _ in range(count):
            _value(file, _ARRAY)
    else:
        file.seek(struct.calcsize(_SCALARS[inner]) * count, 1)
    return count
