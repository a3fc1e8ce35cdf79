"""What models were measured to take, kept between runs, a JSON object a line."""

from __future__ import annotations

import hashlib
from pathlib import Path
from statistics import median
from typing import TypeVar

import msgspec

from engine.memory.devices import Backend
from engine.memory.estimate import Setting
from engine.places import runs_dir

_HEAD = 1 << 20
_LAST = 5
"""Runs whose turns count."""


class Key(msgspec.Struct, frozen=True):
    """What a measurement is of: anything else that is the same takes the same."""

    model: str
    """`identity` of the file."""
    cells: int
    sequences: int
    outputs: int
    cache: str
    backend: Backend
    precise: bool = False

    @staticmethod
    def of(model: str, setting: Setting, backend: Backend) -> Key:
        return Key(
            model,
            setting.cells,
            setting.sequences,
            setting.outputs,
            setting.cache.value,
            backend,
            setting.precise,
        )


class Measurement(msgspec.Struct, frozen=True):
    """Bytes as a device or the system reported them, beside what had been predicted."""

    key: Key
    predicted: int
    measured: int


class TurnMeasurement(msgspec.Struct, frozen=True):
    """Of a model that took turns with another: how long it took to leave and to come back."""

    key: Key
    verifies: bool
    strategy: str
    moved: int
    """Bytes, by the plan."""
    expected: float
    """Seconds, likewise."""
    seconds: float
    """As measured, in the mean of a run."""


_Kind = TypeVar("_Kind", Measurement, TurnMeasurement)


class Records:
    """A file of measurements; of bytes the last one of a key counts.

    It is a convenience: a file that cannot be read or written is as good as an empty one.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, measurement: Measurement | TurnMeasurement) -> None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("ab") as file:
                file.write(msgspec.json.encode(measurement) + b"\n")
        except OSError:
            return

    def find(self, key: Key) -> Measurement | None:
        """The measurement of exactly this, if there was one."""
        return next((m for m in reversed(self._all(Measurement)) if m.key == key), None)

    def knows(self, model: str, cache: str, backend: Backend) -> bool:
        """Whether the model was measured at any size."""
        return self._last(model, cache, backend) is not None

    def surplus(self, model: str, cache: str, backend: Backend) -> int:
        """Bytes by which the model last took more than predicted, at whatever size; never less
        than 0, so that a lucky measurement does not make the next plan too tight."""
        found = self._last(model, cache, backend)
        return max(0, found.measured - found.predicted) if found else 0

    def turns(
        self, model: str, cache: str, backend: Backend, *, verifies: bool
    ) -> dict[str, float]:
        """Seconds a byte that the model took to leave and come back, by strategy: the median of
        its last runs in that role, at whatever size, since any of them may have been disturbed."""
        found: dict[str, list[float]] = {}
        for one in self._all(TurnMeasurement):
            about = (one.key.model, one.key.cache, one.key.backend, one.verifies)
            if about == (model, cache, backend, verifies):
                found.setdefault(one.strategy, []).append(one.seconds / max(1, one.moved))
        return {strategy: median(times[-_LAST:]) for strategy, times in found.items()}

    def _last(self, model: str, cache: str, backend: Backend) -> Measurement | None:
        wanted = (model, cache, backend)
        return next(
            (
                m
                for m in reversed(self._all(Measurement))
                if (m.key.model, m.key.cache, m.key.backend) == wanted
            ),
            None,
        )

    def _all(self, kind: type[_Kind]) -> list[_Kind]:
        try:
            lines = self._path.read_bytes().splitlines()
        except OSError:
            return []
        found = []
        for line in lines:
            try:
                found.append(msgspec.json.decode(line, type=kind))
            except msgspec.DecodeError:  # the other kind, cut short by a crash, or older
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
