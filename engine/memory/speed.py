"""Speeds: measured for this machine's processor, from a table for graphics processors."""

from __future__ import annotations

import time
import tomllib
from collections.abc import Callable
from functools import cache
from importlib import resources

import numpy as np

from engine.errors import EngineError
from engine.memory.devices import Device, Kind
from engine.memory.roofline import Speed
from engine.memory.sizes import GIB
from engine.protocol.events import Trouble


def named(name: str) -> Device:
    """A device of the table, with all of its memory free.

    Raises:
        EngineError: the table has none of that name.
    """
    table = _table()
    key = name.casefold().removeprefix("nvidia ").removeprefix("geforce ").removeprefix("apple ")
    for known, entry in table.items():
        if known.casefold() == key:
            memory = int(entry["memory"] * GIB)
            link = entry.get("link")
            return Device(
                known,
                Kind.UNIFIED if entry.get("unified") else Kind.GPU,
                memory,
                memory,
                _speed(entry),
                link * 1e9 if link else None,
            )
    raise EngineError(
        Trouble.USAGE,
        f"Sapwood has no figures of a '{name}'.",
        f"It knows {', '.join(table)}; for any other, give its memory with --budget.",
    )


def speeds() -> dict[str, Speed]:
    """Speeds of the table by name."""
    return {name: _speed(entry) for name, entry in _table().items()}


@cache
def processor() -> Speed:
    """This machine's processor, measured once in about a tenth of a second.

    Bandwidth is that of a copy, read and written; operations are those of a product of matrices
    in 32 bits.
    """
    block = np.ones(1 << 24, np.float32)
    target = np.empty_like(block)
    matrix = np.ones((1024, 1024), np.float32)
    copied = _best(lambda: np.copyto(target, block))
    multiplied = _best(lambda: matrix @ matrix)
    return Speed(2 * block.nbytes / copied, 2 * 1024**3 / multiplied)


def _best(action: Callable[[], object]) -> float:
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def _speed(entry: dict) -> Speed:
    return Speed(entry["bandwidth"] * 1e9, entry["tflops"] * 1e12)


@cache
def _table() -> dict[str, dict]:
    return tomllib.loads((resources.files("engine.memory") / "gpus.toml").read_text("utf-8"))
