"""How often the system has ended a process because memory ran out."""

from __future__ import annotations

from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")


def count_memory_kills() -> int:
    """Out-of-memory kills so far on this machine and in this control group.

    Only Linux counts them; elsewhere this is 0. The two overlap, so only growth means anything.
    """
    return _counter(Path("/proc/vmstat")) + _counter(_control_group() / "memory.events")


def _control_group() -> Path:
    for line in _lines(Path("/proc/self/cgroup")):
        if line.startswith("0::/"):
            return _CGROUPS / line.removeprefix("0::/")
    return _CGROUPS


def _counter(path: Path) -> int:
    for line in _lines(path):
        name, _, value = line.partition(" ")
        if name == "oom_kill":
            return int(value)
    return 0


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
