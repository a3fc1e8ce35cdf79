"""What memory this machine has and how much of it is free, read anew at each call."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

import psutil

from engine.memory.roofline import Speed
from engine.models.devices import Native

_LANE = {3: 8e9, 4: 16e9, 5: 32e9}
"""Transfers a second of a PCI Express lane by generation, a bit each, 128 of 130 are data."""


Backend = Literal["cpu", "cuda", "metal", "vulkan", "other"]
_BACKENDS: Mapping[str, Backend] = {
    "CPU": "cpu",
    "CUDA": "cuda",
    "Metal": "metal",
    "MTL": "metal",
    "Vulkan": "vulkan",
}


class Kind(StrEnum):
    RAM = "ram"
    GPU = "gpu"
    UNIFIED = "unified"
    """One memory for processor and GPU: there is nowhere else to move things to."""


@dataclass(frozen=True, slots=True)
class Device:
    """A memory that models can be put in. Sizes in bytes."""

    name: str
    kind: Kind
    total: int
    free: int
    speed: Speed | None = None
    link: float | None = None
    """Bytes a second between it and RAM; None where unknown."""
    capability: tuple[int, int] | None = None
    """Compute capability of an NVIDIA GPU."""
    backend: Backend = "cpu"
    """What llama.cpp computes with."""
    native: str | None = None
    """llama.cpp's own name for it; None for the processor and for devices of a table."""


@dataclass(frozen=True, slots=True)
class Nvidia:
    """What the NVIDIA driver says; `problem` tells why it says nothing."""

    driver: str = ""
    cuda: tuple[int, int] | None = None
    """Newest CUDA that the driver runs."""
    gpus: tuple[Device, ...] = ()
    problem: str = ""


def ram(root: Path = Path("/")) -> Device:
    """Main memory, less where a control group allows less; unified on Apple silicon.

    Args:
        root: where the file system with `proc` and `sys` begins.
    """
    memory = psutil.virtual_memory()
    total, free = memory.total, memory.available
    for limit, used in _control_groups(root):
        total = min(total, limit)
        free = min(free, max(0, limit - used))
    if platform.system() == "Darwin" and platform.machine() == "arm64":
        return Device("unified memory", Kind.UNIFIED, total, free)
    return Device("RAM", Kind.RAM, total, free)


def nvidia(speed_of: dict[str, Speed] | None = None) -> Nvidia:
    """The GPUs the NVIDIA driver knows.

    Args:
        speed_of: speeds by name, for cards whose data sheet is known.
    """
    try:
        import pynvml
    except ImportError:
        return Nvidia(problem="the Python package nvidia-ml-py is not installed")
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return Nvidia(problem=f"no NVIDIA driver answers ({error})")
    try:
        version = pynvml.nvmlSystemGetCudaDriverVersion()
        handles = map(pynvml.nvmlDeviceGetHandleByIndex, range(pynvml.nvmlDeviceGetCount()))
        return Nvidia(
            driver=str(pynvml.nvmlSystemGetDriverVersion()),
            cuda=(version // 1000, version % 1000 // 10),
            gpus=tuple(_gpu(pynvml, handle, speed_of or {}) for handle in handles),
        )
    except pynvml.NVMLError as error:
        return Nvidia(problem=f"the NVIDIA driver failed ({error})")
    finally:
        with suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()


def accelerator(
    found: Sequence[Native], memory: Device, driver: Nvidia, speed_of: Mapping[str, Speed]
) -> Device | None:
    """What llama.cpp can compute on besides the processor: the GPU with most free memory.

    One that is part of the processor shares its memory, and is taken where there is no other.

    Args:
        found: llama.cpp's own list.
        memory: RAM, of which a part of the processor can have no more than is free.
        driver: tells how NVIDIA's GPUs are connected.
    """
    for kind in ("gpu", "igpu"):
        fitting = [one for one in found if one.kind == kind]
        if fitting:
            break
    else:
        return None
    best = max(fitting, key=lambda one: one.free)
    name = _short(best.description)
    backend = _BACKENDS.get(best.backend, "other")
    known = next((gpu for gpu in driver.gpus if gpu.name == name), None)
    unified = kind == "igpu" or backend == "metal"
    return Device(
        name,
        Kind.UNIFIED if unified else Kind.GPU,
        min(best.total, memory.total) if unified else best.total,
        min(best.free, memory.free) if unified else best.free,
        speed_of.get(name),
        known.link if known else None,
        known.capability if known else None,
        backend,
        best.name,
    )


def _short(name: str) -> str:
    """A card's name without its maker's: "NVIDIA GeForce RTX 4090" is an "RTX 4090"."""
    return name.removeprefix("NVIDIA ").removeprefix("GeForce ").removeprefix("Apple ")


def _gpu(nvml: Any, handle: Any, speed_of: dict[str, Speed]) -> Device:
    name = _short(str(nvml.nvmlDeviceGetName(handle)))
    memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    link = capability = None
    with suppress(nvml.NVMLError):
        generation = nvml.nvmlDeviceGetMaxPcieLinkGeneration(handle)
        lanes = nvml.nvmlDeviceGetMaxPcieLinkWidth(handle)
        link = _LANE[min(max(generation, 3), 5)] * lanes * 128 / 130 / 8
    with suppress(nvml.NVMLError):
        capability = tuple(nvml.nvmlDeviceGetCudaComputeCapability(handle))
    total, free = int(memory.total), int(memory.free)
    return Device(name, Kind.GPU, total, free, speed_of.get(name), link, capability, "cuda")


def _control_groups(root: Path) -> list[tuple[int, int]]:
    """(limit, bytes in use that cannot be reclaimed) of each group this process is in."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            place, names = root / "sys/fs/cgroup", ("memory.max", "memory.current", "inactive_file")
        elif controllers == "memory":
            place = root / "sys/fs/cgroup/memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        group = place / path.lstrip("/")
        for folder in (group, *group.parents):
            with suppress(OSError, ValueError):  # "max" is no number: no limit
                found.append(_limit(folder, *names))
            if folder == place:
                break
    return found


def _limit(folder: Path, limit: str, current: str, cache: str) -> tuple[int, int]:
    stat = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
    used = int((folder / current).read_text()) - int(stat.get(cache, 0))
    return int((folder / limit).read_text()), used
