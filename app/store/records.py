"""What is kept of a conversation."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from app.printable import one_line

TITLE = 60
"""Longest title made from a text, in characters."""


class Role(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"


class State(StrEnum):
    """How a message came to be what it is."""

    COMPLETE = "complete"
    RUNNING = "running"
    """Its run goes on, or was cut off with the program; what there is of it is in its log."""
    STOPPED = "stopped"
    """By the user or a time limit; the text is what there was."""
    FAILED = "failed"
    """The note says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A conversation. Its messages form a tree."""

    id: int
    title: str
    created: str
    """ISO 8601, UTC, as all times here."""
    updated: str
    deleted: str | None = None
    head: int | None = None
    """The message at the end of the branch that was open last."""
    messages: int = 0
    """How many there are, on all branches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What one side said, exactly as it was said."""

    id: int
    session: int
    parent: int | None
    role: Role
    text: str
    state: State
    created: str
    settings: dict[str, Any] = field(default_factory=dict)
    """How it was to be answered, e.g. the effort; whatever JSON can hold."""
    log: Path | None = None
    """The log of the run that gave it."""
    answer: str | None = None
    """The final answer of the run."""
    note: str = ""
    """What the user was told of it, e.g. why it failed."""


@dataclass(frozen=True, slots=True)
class Found:
    """A place that a search found."""

    session: Session
    message: int | None
    """None where it is the title."""
    excerpt: str


def title_of(text: str) -> str:
    """The beginning of a text, for a list of titles."""
    line = one_line(text)
    return line if len(line) <= TITLE else line[: TITLE - 1].rstrip() + "…"
