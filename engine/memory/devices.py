"""What memory this machine has and how much of it is free, read anew at each call."""

from __future__ import annotations

import platform
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import psutil

from engine.memory.roofline import Speed

_LANE = {3: 8e9, 4: 16e9, 5: 32e9}
"""Transfers a second of a PCI Express lane by generation, a bit each, 128 of 130 are data."""


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


def _gpu(nvml: Any, handle: Any, speed_of: dict[str, Speed]) -> Device:
    name = str(nvml.nvmlDeviceGetName(handle)).removeprefix("NVIDIA ").removeprefix("GeForce ")
    memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    link = capability = None
    with suppress(nvml.NVMLError):
        generation = nvml.nvmlDeviceGetMaxPcieLinkGeneration(handle)
        lanes = nvml.nvmlDeviceGetMaxPcieLinkWidth(handle)
        link = _LANE[min(max(generation, 3), 5)] * lanes * 128 / 130 / 8
    with suppress(nvml.NVMLError):
        capability = tuple(nvml.nvmlDeviceGetCudaComputeCapability(handle))
    return Device(
        name, Kind.GPU, int(memory.total), int(memory.free), speed_of.get(name), link, capability
    )


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
