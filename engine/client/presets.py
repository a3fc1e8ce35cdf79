"""Presets by name or by the memory that is free, and what of them is not on this machine."""

from __future__ import annotations

from engine import catalogue
from engine.catalogue import Preset, Role
from engine.catalogue.presets import suited
from engine.client.planning import own_device
from engine.errors import EngineError
from engine.memory.sizes import size_text
from engine.protocol.events import Trouble

__all__ = ["AUTO", "Preset", "preset", "refuse_missing"]

AUTO = "auto"
"""The name that stands for the preset which suits the memory that is free now."""


def preset(name: str) -> tuple[str, Preset]:
    """A preset and its own name.

    Raises:
        EngineError: there is none of that name or, for `AUTO`, none for so little memory; or a
            catalogue file has a mistake.
    """
    known = catalogue.load()
    if name == AUTO:
        device, _ = own_device()
        found = suited(known, device)
        if found is None:
            raise EngineError(
                Trouble.MEMORY,
                f"No preset is made for so little: {size_text(device.free)} are free of "
                f"{device.name}.",
                "Free some, or name smaller models with --generator and --verifier.",
            )
        return found
    if name not in known.presets:
        raise EngineError(
            Trouble.USAGE,
            f"There is no preset '{name}'.",
            f"There are {', '.join(known.presets)}; '{AUTO}' takes the one that suits the memory "
            "that is free.",
        )
    return name, known.presets[name]


def refuse_missing(name: str, generator: str, verifier: str | None) -> None:
    """See that the models which are used with a preset are here.

    Raises:
        EngineError: some are not; the message has the command that gets them.
    """
    known = catalogue.load()
    wanted: list[tuple[Role, str]] = [("generator", generator)]
    if verifier is not None:
        wanted.append(("verifier", verifier))
    missing = []
    for role, id in wanted:
        entry = known.entries(role).get(id)
        if entry is not None and catalogue.find(entry) is None:
            missing.append(id)
    if missing:
        is_not = "is" if len(missing) == 1 else "are"
        raise EngineError(
            Trouble.MODEL,
            f"For the preset '{name}', {' and '.join(missing)} {is_not} not on this machine.",
            f"Download with: sapwood models pull {' '.join(missing)}",
        )
