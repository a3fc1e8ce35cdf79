"""Size and shape of a model that is not on this machine, as the hub tells them."""

from __future__ import annotations

from engine import catalogue
from engine.catalogue import OnHub, Role, ToConvert
from engine.hub.checkpoint import needed
from engine.hub.remote import header, look_up
from engine.hub.tables import bytes_by_type, remote_tensors, remote_text
from engine.memory.estimate import Facts, facts
from engine.memory.foresee import foresee
from engine.memory.sizes import size_text


def unseen(role: Role, name: str, place: OnHub | ToConvert) -> tuple[Facts, str]:
    """The facts of a model, and a note on what they are of.

    Raises:
        EngineError: the hub cannot tell.
    """
    if isinstance(place, OnHub):
        found = look_up(place.repository, place.file)
        note = f"{name} is not downloaded; its header was read on the hub."
        return facts(header(found), found.size), note
    entry = catalogue.load().entries(role)[name]
    format = catalogue.load().formats.get(entry.format or "")
    config = remote_text(place.repository, "config.json")
    foreseen = foresee(config, name, headed=format is not None and format.head)
    note = f"{name} is not converted; sizes are those of its conversion to q8_0{_now(place)}."
    return foreseen, note


def _now(place: ToConvert) -> str:
    """What the checkpoint is as it stands."""
    files = needed(place.repository)
    if any(file.endswith(".safetensors") for file in files):
        sizes = bytes_by_type(remote_tensors(place.repository, files).values())
        stands = ", ".join(f"{size_text(size)} as {kind}" for kind, size in sizes.items())
    else:
        stands = f"{size_text(sum(files.values()))} of pickled weights"
    return f" (the checkpoint has {stands})"
