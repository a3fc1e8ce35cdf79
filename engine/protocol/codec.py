"""JSON lines for events and messages."""

from __future__ import annotations

import msgspec

from engine.protocol.events import Event
from engine.protocol.messages import AnyEvent, Message

_encoder = msgspec.json.Encoder()
_events = msgspec.json.Decoder(AnyEvent)
_messages = msgspec.json.Decoder(Message)


def encode(item: Event | Message) -> bytes:
    """One line of JSON, newline included."""
    return _encoder.encode(item) + b"\n"


def decode_event(line: bytes) -> AnyEvent:
    """Read one event.

    Raises:
        msgspec.DecodeError: the line is torn or not an event of this version.
    """
    return _events.decode(line)


def decode_message(line: bytes) -> Message:
    """Read one message between client and worker.

    Raises:
        msgspec.DecodeError: the line is not a message of this version.
    """
    return _messages.decode(line)
