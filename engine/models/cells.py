"""Counts the cells of a KV cache whose paths share prefixes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class _Segment:
    """A run of cells. `holders` counts the paths and segments that build on it directly."""

    parent: _Segment | None
    length: int
    holders: int


class CellCount:
    """Mirrors appends, forks and drops of a cache to know how many cells are in use."""

    def __init__(self) -> None:
        self.used = 0
        self._tips: dict[int, _Segment] = {}
        self._lengths: dict[int, int] = {}

    def length(self, path: int) -> int:
        return self._lengths.get(path, 0)

    def append(self, paths: tuple[int, ...], count: int) -> None:
        """Add `count` cells held by all of `paths`, which are equal so far."""
        tip = self._tips.get(paths[0])
        self.used += count
        if tip is not None and len(paths) == 1 and tip.holders == 1:
            tip.length += count
        else:
            if tip is not None:
                tip.holders += 1
            segment = _Segment(tip, count, 0)
            for path in paths:
                segment.holders += 1
                old = self._tips.get(path)
                self._tips[path] = segment
                self._release(old)
        for path in paths:
            self._lengths[path] = self.length(path) + count

    def fork(self, source: int, target: int) -> None:
        tip = self._tips.get(source)
        if tip is not None:
            tip.holders += 1
            self._tips[target] = tip
            self._lengths[target] = self._lengths[source]

    def drop(self, path: int) -> int:
        """Returns how many cells at the end of the path nothing else holds."""
        before = self.used
        self._lengths.pop(path, None)
        self._release(self._tips.pop(path, None))
        return before - self.used

    def _release(self, segment: _Segment | None) -> None:
        while segment is not None:
            segment.holders -= 1
            if segment.holders:
                return
            self.used -= segment.length
            segment = segment.parent
