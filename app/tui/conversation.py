"""The turns of a conversation. Any may be followed by several: branches, one of which is open."""

from __future__ import annotations

from app.tui.turn import Turn


class Conversation:
    """Turns as a tree. A question that is changed or asked again begins a branch beside the old
    one, which stays."""

    def __init__(self) -> None:
        self._next: dict[Turn | None, list[Turn]] = {}
        self._before: dict[Turn, Turn | None] = {}
        self._open: dict[Turn | None, Turn] = {}
        """Of what follows a turn, the one that is shown."""

    @property
    def path(self) -> list[Turn]:
        """The turns of the open branch, the first one first."""
        turns: list[Turn] = []
        turn = self._open.get(None)
        while turn is not None:
            turns.append(turn)
            turn = self._open.get(turn)
        return turns

    def add(self, turn: Turn, before: Turn | None) -> None:
        """Put a turn behind another, or at the beginning; its branch is the open one now."""
        beside = self._next.setdefault(before, [])
        beside.append(turn)
        for place, one in enumerate(beside, 1):
            one.branch = (place, len(beside))
        self._before[turn] = before
        self.open(turn)

    def before(self, turn: Turn) -> Turn | None:
        return self._before[turn]

    def beside(self, turn: Turn) -> list[Turn]:
        """The turns in the same place on all branches, that one included."""
        return self._next[self._before[turn]]

    def open(self, turn: Turn) -> None:
        """Open the branch that a turn is on, with what followed it last."""
        here: Turn | None = turn
        while here is not None:
            before = self._before[here]
            self._open[before] = here
            here = before
