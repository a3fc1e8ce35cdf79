"""What widgets tell their screen."""

from __future__ import annotations

from dataclasses import dataclass

from textual.message import Message

from app.tui.effort import Effort
from app.tui.turn import Turn


@dataclass
class Asked(Message):
    """The user sends what is in the composer."""

    text: str


@dataclass
class EffortChosen(Message):
    effort: Effort


@dataclass
class ModelsWanted(Message):
    """The user wants to see what else could answer."""


@dataclass
class TurnClicked(Message):
    """The user points at a turn."""

    turn: Turn


@dataclass
class TurnSelected(Message):
    """Another turn is the one that commands are for."""

    turn: Turn


@dataclass
class BranchChosen(Message):
    """The user wants the conversation as it goes on from a turn beside this one."""

    turn: Turn
    step: int


@dataclass
class StepHighlighted(Message):
    """The cursor of the tree is on another row."""


@dataclass
class FollowChanged(Message):
    """The tree begins or ends to follow the run by itself."""

    follow: bool


@dataclass
class RoundChosen(Message):
    """The user wants to see a finished run as it was after this round."""

    number: int


@dataclass
class Sought(Message):
    """The user wants to see a finished run as it was at this share of its time, 0 to 1."""

    share: float
