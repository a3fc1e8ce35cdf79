"""Size and shape of a model that is not on this machine, by what the hub tells or has told."""

from __future__ import annotations

from contextlib import suppress
from datetime import date
from pathlib import Path

import msgspec

from engine import catalogue
from engine.catalogue import OnHub, Role, ToConvert
from engine.errors import EngineError
from engine.hub.checkpoint import needed
from engine.hub.remote import header, look_up
from engine.hub.tables import bytes_by_type, remote_tensors, remote_text
from engine.memory.estimate import Facts, facts
from engine.memory.foresee import foresee
from engine.memory.sizes import size_text
from engine.places import runs_dir


class _Seen(msgspec.Struct, frozen=True):
    """What the hub told of a model, a line of the file in which that is kept."""

    role: Role
    place: str
    """The `file` of its entry."""
    day: str
    facts: Facts
    note: str


def unseen(role: Role, name: str, place: OnHub | ToConvert) -> tuple[Facts, str]:
    """The facts of a model, and a note on what they are of.

    Where the hub cannot be asked, they are those that it gave last.

    Raises:
        EngineError: the hub cannot tell, and never has.
    """
    file = catalogue.load().entries(role)[name].file
    try:
        found, note = _asked(role, name, place)
    except EngineError as error:
        seen = _last(role, file)
        if seen is None:
            raise _unknown(name, error) from None
        return seen.facts, f"{seen.note} That was on {seen.day}; now: {error.message}"
    _keep(_Seen(role, file, date.today().isoformat(), found, note))
    return found, note


def _asked(role: Role, name: str, place: OnHub | ToConvert) -> tuple[Facts, str]:
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


def _kept() -> Path:
    return runs_dir().parent / "seen.jsonl"


def _keep(seen: _Seen) -> None:
    """Write down what the hub told, in place of what it told before; without that, all goes on."""
    with suppress(OSError):
        others = [one for one in _all() if (one.role, one.place) != (seen.role, seen.place)]
        _kept().parent.mkdir(parents=True, exist_ok=True)
        fresh = _kept().with_suffix(".new")
        fresh.write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in [*others, seen]))
        fresh.replace(_kept())


def _last(role: Role, place: str) -> _Seen | None:
    return next((one for one in _all() if (one.role, one.place) == (role, place)), None)


def _all() -> list[_Seen]:
    try:
        lines = _kept().read_bytes().splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        with suppress(msgspec.DecodeError):  # cut short, or of another version
            found.append(msgspec.json.decode(line, type=_Seen))
    return found


def _unknown(name: str, error: EngineError) -> EngineError:
    return EngineError(
        error.trouble,
        f"How much memory '{name}' takes is not known: it is not on this machine, and the hub has "
        f"not told yet. {error.message}",
        f"{error.advice} What the hub tells is kept, so that a plan works without it later; a file "
        "that is here can be planned by its path.",
    )
