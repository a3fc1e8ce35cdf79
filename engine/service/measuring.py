"""What models really take, as the system or the driver of a device reports it."""

from __future__ import annotations

import psutil

from engine.memory.devices import Device, Kind
from engine.memory.sizes import MIB, size_text
from engine.models.devices import native_devices

_SLACK = 30 * MIB
_SHARE = 0.05
"""How far a prediction may be off, in bytes or of the whole, whichever is more."""


def taken(device: Device) -> int:
    """Bytes in use: resident ones of this process, or those of a GPU, whoever has them."""
    if device.kind is not Kind.GPU:
        return psutil.Process().memory_info().rss
    now = (one for one in native_devices() if one.name == device.native)
    return next((one.total - one.free for one in now), 0)


def slack(size: int) -> int:
    """By how many bytes a process may take more than `size` without anybody being told."""
    return max(_SLACK, int(size * _SHARE))


def over_budget(process: int, budget: int) -> str:
    """What to say of a process that takes more than its budget; empty where it does not."""
    if process <= budget + slack(budget):
        return ""
    return (
        f"The engine takes {size_text(process)}, {size_text(process - budget)} more than its "
        f"budget of {size_text(budget)}. The next plan of these models allows for it."
    )
