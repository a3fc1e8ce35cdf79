"""What models were measured to take, kept between runs, a JSON object a line."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec

from engine.memory.devices import Backend
from engine.memory.estimate import Setting
from engine.places import runs_dir

_HEAD = 1 << 20


class Key(msgspec.Struct, frozen=True):
    """What a measurement is of: anything else that is the same takes the same."""

    model: str
    """`identity` of the file."""
    cells: int
    sequences: int
    outputs: int
    cache: str
    backend: Backend

    @staticmethod
    def of(model: str, setting: Setting, backend: Backend) -> Key:
        return Key(
            model, setting.cells, setting.sequences, setting.outputs, setting.cache.value, backend
        )


class Measurement(msgspec.Struct, frozen=True):
    """Bytes as a device or the system reported them, beside what had been predicted."""

    key: Key
    predicted: int
    measured: int


class Records:
    """A file of measurements; the last one of a key counts.

    It is a convenience: a file that cannot be read or written is as good as an empty one.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, measurement: Measurement) -> None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("ab") as file:
                file.write(msgspec.json.encode(measurement) + b"\n")
        except OSError:
            return

    def find(self, key: Key) -> Measurement | None:
        """The measurement of exactly this, if there was one."""
        return next((m for m in reversed(self._all()) if m.key == key), None)

    def knows(self, model: str, cache: str, backend: Backend) -> bool:
        """Whether the model was measured at any size."""
        return self._last(model, cache, backend) is not None

    def surplus(self, model: str, cache: str, backend: Backend) -> int:
        """Bytes by which the model last took more than predicted, at whatever size; never less
        than 0, so that a lucky measurement does not make the next plan too tight."""
        found = self._last(model, cache, backend)
        return max(0, found.measured - found.predicted) if found else 0

    def _last(self, model: str, cache: str, backend: Backend) -> Measurement | None:
        wanted = (model, cache, backend)
        return next(
            (
                m
                for m in reversed(self._all())
                if (m.key.model, m.key.cache, m.key.backend) == wanted
            ),
            None,
        )

    def _all(self) -> list[Measurement]:
        try:
            lines = self._path.read_bytes().splitlines()
        except OSError:
            return []
        found = []
        for line in lines:
            try:
                found.append(msgspec.json.decode(line, type=Measurement))
            except msgspec.DecodeError:  # cut short by a crash, or of another version
                continue
        return found


def identity(path: Path) -> str:
    """Names a model file by its content: the size, and a hash of the first MiB.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        head = hashlib.sha256(file.read(_HEAD)).hexdigest()[:16]
    return f"{path.stat().st_size}-{head}"


def records_file() -> Path:
    """Where measurements are kept."""
    return runs_dir().parent / "memory.jsonl"
