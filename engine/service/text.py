"""Joining the text of many small appends."""

from __future__ import annotations

from engine.protocol import TextAppended
from engine.search.policy import Lineage


class TextBuffer:
    """Text not yet sent, by node, in the order in which the nodes got their first piece.

    Args:
        interval: seconds from one flush to the next.
    """

    def __init__(self, interval: float = 0.05) -> None:
        self._interval = interval
        self._pieces: dict[Lineage, list[str]] = {}
        self._due = float("-inf")

    def add(self, lineage: Lineage, text: str) -> None:
        self._pieces.setdefault(lineage, []).append(text)

    def take_due(self, now: float) -> list[TextAppended]:
        """Everything, once `interval` seconds have passed since the last time, else nothing."""
        if now < self._due:
            return []
        self._due = now + self._interval
        return self.take_all()

    def take(self, lineage: Lineage) -> list[TextAppended]:
        """What one node has pending."""
        pieces = self._pieces.pop(lineage, None)
        return [] if pieces is None else [TextAppended(lineage=lineage, text="".join(pieces))]

    def take_all(self) -> list[TextAppended]:
        return [event for lineage in list(self._pieces) for event in self.take(lineage)]
