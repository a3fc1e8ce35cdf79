"""Speeds: measured for this machine's processor, from a table for graphics processors."""

from __future__ import annotations

import mmap
import re
import time
import tomllib
from collections.abc import Callable
from functools import cache
from importlib import resources

import numpy as np

from engine.errors import EngineError
from engine.memory.devices import Device, Kind
from engine.memory.roofline import Speed
from engine.memory.sizes import GIB, MIB
from engine.protocol.events import Trouble

_BLOCK = 16 * MIB
"""Small enough to fit, for a moment, into what a plan counts for the process."""


def named(name: str) -> Device:
    """A device of the table, or "CPU 16 GB": this processor with that much RAM. All of it is free.

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
    if plain := re.fullmatch(r"cpu (\d+) ?gb", key):
        memory = int(plain[1]) * GIB
        return Device(f"CPU {plain[1]} GB", Kind.RAM, memory, memory)
    raise EngineError(
        Trouble.USAGE,
        f"Sapwood has no figures of a '{name}'.",
        f"It knows {', '.join(table)}, and 'CPU 16 GB' for this processor with other memory; for "
        "any other, give its memory with --budget.",
    )


def speeds() -> dict[str, Speed]:
    """Speeds of the table by name."""
    return {name: _speed(entry) for name, entry in _table().items()}


@cache
def processor() -> Speed:
    """This machine's processor, measured once in about a tenth of a second.

    Bandwidth is that of reading and writing a block larger than most caches; operations are those
    of a product of matrices in 32 bits.
    """
    matrix = np.ones((1024, 1024), np.float32)
    multiplied = _best(lambda: matrix @ matrix)
    block = _fresh()
    added = _best(lambda: np.add(block, 1, out=block))
    return Speed(2 * block.nbytes / added, 2 * 1024**3 / multiplied)


@cache
def loading() -> float:
    """Bytes a second at which this machine gives a process memory that it did not have.

    Models are loaded at about that speed once their files are in the page cache.
    """
    return _BLOCK / _best(lambda: _fresh().fill(1))


def _fresh() -> np.ndarray:
    """Memory straight from the system, which gets it back once nobody looks at it."""
    return np.frombuffer(mmap.mmap(-1, _BLOCK), np.float32)


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
