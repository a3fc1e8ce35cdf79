"""The header of a GGUF file: metadata and the table of tensors, read without loading weights.

Long arrays (token lists and the like) are skipped and only counted, so that a header with a
vocabulary of 150,000 entries is read in well under a second.
"""

from __future__ import annotations

import stat
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from engine.errors import EngineError
from engine.protocol.events import Trouble

_SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q",
            11: "<q", 12: "<d"}  # fmt: skip
_STRING, _ARRAY = 8, 9
_LONGEST_TEXT = 1 << 26
_DEEPEST_ARRAY = 4
_MOST_DIMENSIONS = 4

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
        return value if isinstance(value, int) else default


def read_header(path: Path) -> Header:
    """Read and check the header of a model file.

    Raises:
        EngineError: the file is missing, not a GGUF, or cut short.
    """
    size = 0
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):  # opening a pipe would wait for a writer
            raise _not_a_file(path, about.st_mode)
        size = about.st_size
        with path.open("rb") as file:
            header = parse_header(file, size, path.name)
    except FileNotFoundError:
        raise EngineError(
            Trouble.MODEL, f"There is no model file {path}.", "Check the path."
        ) from None
    except (OSError, ValueError) as error:  # a path with a NUL in it is a ValueError
        reason = getattr(error, "strerror", None) or error
        raise EngineError(
            Trouble.MODEL, f"The model file {path} cannot be read: {reason}."
        ) from None
    return header


class Forward(Protocol):
    """A file that is read from beginning to end; a seek only goes forward."""

    def read(self, count: int, /) -> bytes: ...
    def seek(self, place: int, /) -> object: ...


def parse_header(file: Forward, size: int, name: str) -> Header:
    """Read and check a header from the beginning of a file.

    Args:
        size: bytes of the whole file, whether or not they can all be read here.

    Raises:
        EngineError: it is not a GGUF, or cut short.
    """
    try:
        header = _parse(_Reader(file, size), name)
    except _DamagedError:
        raise _cut_short(name, size) from None
    ends = [t.offset + t.nbytes for t in header.tensors if t.nbytes is not None]
    if ends and header.data_start + max(ends) > size:
        raise _cut_short(name, size, header.data_start + max(ends))
    return header


class _DamagedError(Exception):
    """The header does not make sense, or ends too early."""


def _not_a_file(path: Path, mode: int) -> EngineError:
    kind = "a folder" if stat.S_ISDIR(mode) else "a device or pipe"
    return EngineError(Trouble.MODEL, f"{path} is {kind}, not a model file.", "Name a .gguf file.")


def _cut_short(name: str, size: int, expected: int | None = None) -> EngineError:
    tells = f", its header tells of {expected:,}" if expected else " and its header is not whole"
    return EngineError(
        Trouble.MODEL,
        f"{name} is cut short or damaged: it has {size:,} bytes{tells}.",
        "Download it again.",
    )


class _Reader:
    """Reads the values of a header and never believes a length the file cannot hold."""

    def __init__(self, file: Forward, size: int) -> None:
        self._file = file
        self._size = size
        self.place = 0

    def take(self, count: int) -> bytes:
        self._advance(count)
        data = self._file.read(count)
        if len(data) < count:
            raise _DamagedError
        return data

    def skip(self, count: int) -> None:
        self._advance(count)
        self._file.seek(self.place)

    def _advance(self, count: int) -> None:
        if count > self._size - self.place:
            raise _DamagedError
        self.place += count

    def unpack(self, layout: str) -> tuple:
        return struct.unpack(layout, self.take(struct.calcsize(layout)))

    def text(self) -> str:
        (length,) = self.unpack("<Q")
        if length > _LONGEST_TEXT:
            raise _DamagedError
        return self.take(length).decode(errors="replace")

    def value(self, kind: int, depth: int = 0) -> object:
        """A scalar or a string; an array is skipped and gives its length."""
        if kind == _STRING:
            return self.text()
        if kind in _SCALARS:
            return self.unpack(_SCALARS[kind])[0]
        if kind != _ARRAY or depth == _DEEPEST_ARRAY:
            raise _DamagedError
        inner, count = self.unpack("<IQ")
        if inner in _SCALARS:
            self.skip(struct.calcsize(_SCALARS[inner]) * count)
        elif inner == _STRING:
            for _ in range(count):
                self.skip(self.unpack("<Q")[0])
        else:
            for _ in range(count):
                self.value(inner, depth + 1)
        return count


def _parse(read: _Reader, file: str) -> Header:
    try:
        magic = read.take(4)
    except _DamagedError:
        magic = b""
    if magic != b"GGUF":
        raise EngineError(
            Trouble.MODEL,
            f"{file} is not a GGUF model file.",
            "Sapwood reads models in the GGUF format; choose a file that ends in .gguf.",
        )
    version, tensor_count, key_count = read.unpack("<IQQ")
    if version not in (2, 3):
        raise _DamagedError
    metadata: dict[str, object] = {}
    for _ in range(key_count):
        key = read.text()
        (kind,) = read.unpack("<I")
        metadata[key] = read.value(kind)
    tensors: list[Tensor] = []
    for _ in range(tensor_count):
        name = read.text()
        (dimensions,) = read.unpack("<I")
        if dimensions > _MOST_DIMENSIONS:
            raise _DamagedError
        shape = read.unpack(f"<{dimensions}Q")
        kind, offset = read.unpack("<IQ")
        tensors.append(Tensor(name, shape, kind, offset))
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or alignment < 1:
        raise _DamagedError
    start = -(-read.place // alignment) * alignment
    return Header(metadata, tuple(tensors), start)
