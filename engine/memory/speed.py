"""Speeds: measured for this machine's processor, from a table for graphics processors."""

from __future__ import annotations

import mmap
import os
import re
import time
import tomllib
from collections.abc import Callable
from functools import cache
from importlib import resources
from pathlib import Path

import numpy as np

from engine.errors import EngineError
from engine.memory.devices import Device, Kind
from engine.memory.options import Moving
from engine.memory.roofline import Speed
from engine.memory.sizes import GIB, MIB
from engine.protocol.events import Trouble

_BLOCK = 16 * MIB
"""Small enough to fit, for a moment, into what a plan counts for the process."""
_PART = 4 * MIB
"""Small enough to be had, as a rule, before another program gets the core."""
_FILE = "seedling-generator.gguf"


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
    block = _fresh(_BLOCK)
    added = _best(lambda: np.add(block, 1, out=block))
    return Speed(2 * block.nbytes / added, 2 * 1024**3 / multiplied)


@cache
def loading() -> Moving:
    """How fast this machine gives a process memory that it did not have, and the pages of a file
    (here the embedded generator's) that is in the page cache. Taking them back is part of it."""
    fresh = _PART / _best(lambda: _fresh(_PART).fill(1), 10)
    with Path(str(resources.files("engine.seedling") / "data" / _FILE)).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        return Moving(fresh, size / _best(lambda: _touch(file.fileno(), size), 10))


def _touch(file: int, size: int) -> None:
    """Map a file and see all of its pages, as llama.cpp does."""
    populate = getattr(mmap, "MAP_POPULATE", 0)
    options = {"flags": mmap.MAP_SHARED | populate, "prot": mmap.PROT_READ} if populate else {}
    pages = mmap.mmap(file, size, **(options or {"access": mmap.ACCESS_READ}))
    if not populate:
        np.frombuffer(pages, np.uint8)[:: mmap.PAGESIZE].max()
    pages.close()


def _fresh(size: int) -> np.ndarray:
    """Memory straight from the system, which gets it back once nobody looks at it."""
    return np.frombuffer(mmap.mmap(-1, size), np.float32)


def _best(action: Callable[[], object], times: int = 3) -> float:
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def _speed(entry: dict) -> Speed:
    return Speed(entry["bandwidth"] * 1e9, entry["tflops"] * 1e12)


@cache
def _table() -> dict[str, dict]:
    return tomllib.loads((resources.files("engine.memory") / "gpus.toml").read_text("utf-8"))
