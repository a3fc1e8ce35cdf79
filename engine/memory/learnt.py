"""What is known before a model is loaded: where it would go, and what it took before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from engine.memory.devices import Device, Kind, accelerator, nvidia, ram
from engine.memory.estimate import CacheType, Facts, facts
from engine.memory.folders import folder_facts
from engine.memory.record import Records, identity
from engine.memory.speed import speeds
from engine.models.devices import Native
from engine.models.folder import model_header
from engine.models.gguf import Header


def own_device(found: Sequence[Native], *, gpu: bool) -> tuple[Device, str]:
    """Where models go on this machine, and why that is not the GPU that is there.

    Args:
        found: llama.cpp's own list of devices.
        gpu: whether the installed llama.cpp can use a GPU at all.
    """
    memory, driver = ram(), nvidia(speeds())
    device = accelerator(found, memory, driver, speeds())
    if device is not None:
        unknown = device.speed is None
        note = f"The speed of {device.name} is not known; times are this machine's processor's."
        return device, note if unknown else ""
    if driver.gpus:
        best = max(driver.gpus, key=lambda one: one.free)
        return memory, f"{best.name} is not used: {_reason(gpu)} 'sapwood doctor' tells what to do."
    return memory, ""


def _reason(gpu: bool) -> str:
    if gpu:
        return "llama.cpp does not find it."
    return "the installed llama.cpp computes on the processor only."


def learnt(
    path: Path, cache: CacheType, device: Device, records: Records, *, verifies: bool = False
) -> Facts:
    """Size and shape of a model file, with what it was measured to take beyond them, in bytes and
    where it took turns in seconds.

    Raises:
        EngineError: it cannot be read, or is no GGUF file.
    """
    read, name = _read(path, *_state(path))
    surplus = records.surplus(name, cache.value, device.backend)
    here = device.native is not None or device.kind is Kind.RAM  # and none of a table
    turns: dict[str, float] = {}
    if here:
        turns = records.turns(name, cache.value, device.backend, verifies=verifies)
    return replace(read, surplus=surplus or read.surplus, turns=turns)


def header_of(path: Path) -> Header:
    """The file's header, which is not read again while the file stays as it is."""
    return _header(path, *_state(path))


def name_of(path: Path) -> str:
    """The file's `identity`, likewise."""
    return _read(path, *_state(path))[1]


def _state(path: Path) -> tuple[int, int]:
    try:
        about = path.stat()
    except OSError:
        return 0, 0  # reading the header tells what is wrong
    return about.st_size, about.st_mtime_ns


@lru_cache(maxsize=4)
def _header(path: Path, size: int, changed: int) -> Header:
    return model_header(path)


@lru_cache(maxsize=4)
def _read(path: Path, size: int, changed: int) -> tuple[Facts, str]:
    if path.is_dir():
        return folder_facts(path), f"folder-{identity(path / 'config.json')}"
    return facts(_header(path, size, changed), size), identity(path)
