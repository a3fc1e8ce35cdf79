"""What a download tells, and how it ends. One JSON object a line where it crosses processes."""

from __future__ import annotations

from pathlib import Path

import msgspec

from engine.protocol.events import Trouble


class Progress(msgspec.Struct, frozen=True, tag="progress"):
    """How far it is."""

    file: str
    done: int
    """Bytes."""
    total: int
    note: str = ""
    """What it waits for, if it waits."""


class Fetched(msgspec.Struct, frozen=True, tag="fetched"):
    """The file is whole and where it is used."""

    path: Path
    bytes: int
    """Bytes that were fetched for it, just now."""
    checked: bool
    """Whether the hub gave a checksum, which it then has."""


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """It cannot be had."""

    trouble: Trouble
    message: str
    advice: str
    forcible: bool = False
    """Whether it is fetched all the same if that is asked for."""


Message = Progress | Fetched | Refused


def encode(message: Message) -> bytes:
    """One line."""
    return msgspec.json.encode(message, enc_hook=str) + b"\n"


def decode(line: bytes) -> Message:
    return msgspec.json.decode(line, type=Message, dec_hook=lambda kind, value: kind(value))
