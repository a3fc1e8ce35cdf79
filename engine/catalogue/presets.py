"""Which preset suits a machine: by the memory that is free, not by the name of its device."""

from __future__ import annotations

from engine.catalogue.schema import Catalogue, Preset
from engine.memory.devices import Device
from engine.memory.sizes import parse_size


def suited(catalogue: Catalogue, device: Device) -> tuple[str, Preset] | None:
    """The preset that makes most of what is free on a device, by its name; None where none fits."""
    able = [
        (parse_size(preset.free), name, preset)
        for name, preset in catalogue.presets.items()
        if preset.device is device.kind and parse_size(preset.free) <= device.free
    ]
    if not able:
        return None
    _, name, preset = max(able, key=lambda found: found[0])
    return name, preset
