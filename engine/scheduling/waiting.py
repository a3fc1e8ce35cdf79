"""Who is written next when not all paths fit into the cache."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from engine.models.kv_tree import Stem
from engine.scheduling.node import Node


class Waiting:
    """Siblings, equal so far, that one strand will write when there is room.

    In prefix order the next is whichever shares the longest prefix with the one started last
    (FastTTS, section 4.2, greedy), so that what the cache holds of a parent serves all its
    children before it has to leave. Otherwise the first to come is the first to start.
    """

    def __init__(self, prefix_order: bool) -> None:
        self._prefix_order = prefix_order
        self._families: list[tuple[Stem, list[Node]]] = []
        self._starts: Counter[Stem] = Counter()
        self._last: Stem | None = None

    def __len__(self) -> int:
        return len(self._families)

    def __iter__(self) -> Iterator[list[Node]]:
        return (siblings for _, siblings in self._families)

    def add(self, siblings: list[Node], before: Stem, *, first: bool = False) -> None:
        """Let siblings wait that start after `before`."""
        self._families.insert(0 if first else len(self._families), (before, siblings))
        self._starts[before] += 1

    def next(self) -> list[Node]:
        """Who should start next. There must be somebody."""
        if self._prefix_order and self._last is not None and len(self._families) > 1:
            above = _ancestors(self._last)
            best = max(
                range(len(self._families)), key=lambda i: (_shared(self._families[i][0], above), -i)
            )
            self._families.insert(0, self._families.pop(best))
        return self._families[0][1]

    def shares_start(self) -> bool:
        """Whether others will start where the next one does."""
        return self._starts[self._families[0][0]] > 1

    def started(self) -> None:
        """The next one was started."""
        before, _ = self._families.pop(0)
        self._starts[before] -= 1
        self._last = before

    def stems(self) -> list[Stem]:
        """Where those who wait start, soonest first."""
        return list(dict.fromkeys(before for before, _ in self._families))

    def remove(self, nodes: Iterable[Node]) -> None:
        """These are not to be written after all."""
        gone = {id(node) for node in nodes}
        families, self._families = self._families, []
        self._starts.clear()
        for before, siblings in families:
            left = [node for node in siblings if id(node) not in gone]
            if left:
                self.add(left, before)


def _ancestors(stem: Stem) -> dict[Stem, int]:
    """A stem and those before it, with the tokens to their ends."""
    found: dict[Stem, int] = {}
    at: Stem | None = stem
    while at is not None:
        found[at] = at.end
        at = at.parent
    return found


def _shared(stem: Stem, above: dict[Stem, int]) -> int:
    """Tokens that a stem shares with the one whose ancestors are given."""
    at: Stem | None = stem
    while at is not None and at not in above:
        at = at.parent
    return above[at] if at is not None else 0
