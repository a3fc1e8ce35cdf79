"""Knows the cells of a KV cache whose paths share prefixes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(slots=True)
class _Segment:
    """A run of cells. `holders` counts the paths and segments that build on it directly."""

    parent: _Segment | None
    tokens: list[int]
    holders: int


class CellCount:
    """Mirrors appends, forks and drops of a cache: which tokens it holds, and for which paths."""

    def __init__(self) -> None:
        self.used = 0
        self._tips: dict[int, _Segment] = {}
        self._lengths: dict[int, int] = {}

    def length(self, path: int) -> int:
        return self._lengths.get(path, 0)

    def append(self, paths: tuple[int, ...], tokens: Sequence[int]) -> None:
        """Add a cell for each token, held by all of `paths`, which are equal so far."""
        tip = self._tips.get(paths[0])
        self.used += len(tokens)
        if tip is not None and len(paths) == 1 and tip.holders == 1:
            tip.tokens += tokens
        else:
            if tip is not None:
                tip.holders += 1
            segment = _Segment(tip, list(tokens), 0)
            for path in paths:
                segment.holders += 1
                old = self._tips.get(path)
                self._tips[path] = segment
                self._release(old)
        for path in paths:
            self._lengths[path] = self.length(path) + len(tokens)

    def tail(self, path: int, start: int) -> list[int]:
        """The tokens of a path from position `start` on."""
        parts: list[list[int]] = []
        left = self.length(path) - start
        segment = self._tips.get(path)
        while segment is not None and left > 0:
            parts.append(segment.tokens[max(0, len(segment.tokens) - left) :])
            left -= len(segment.tokens)
            segment = segment.parent
        return [token for part in reversed(parts) for token in part]

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

    def shorten(self, path: int, length: int) -> int:
        """Let go of what a path holds from position `length` on; returns the cells freed."""
        if length >= self.length(path):
            return 0
        tokens = self.tail(path, length)
        shared = self.length(path) - self._own(path)
        before = self.used
        if length >= shared:  # the end of its own tip
            tip = self._tips[path]
            del tip.tokens[len(tip.tokens) - len(tokens) :]
            self.used -= len(tokens)
        else:
            self._split(path, length)
        self._lengths[path] = length
        return before - self.used

    def _own(self, path: int) -> int:
        """Tokens at the end of a path that no other holds."""
        tip = self._tips.get(path)
        return len(tip.tokens) if tip is not None and tip.holders == 1 else 0

    def _split(self, path: int, length: int) -> None:
        """End a path inside a segment that others go on from."""
        old = self._tips.pop(path)
        segment: _Segment | None = old
        end = self.length(path)
        while segment is not None and end - len(segment.tokens) >= length:
            end -= len(segment.tokens)
            segment = segment.parent
        if segment is not None:
            if end > length:  # cut it in two; what others hold of it keeps its object
                kept = len(segment.tokens) - (end - length)
                front = _Segment(segment.parent, segment.tokens[:kept], 1)
                segment.tokens = segment.tokens[kept:]
                segment.parent = front
                segment = front
            segment.holders += 1
            self._tips[path] = segment
        self._release(old)

    def runs(self) -> Iterator[tuple[tuple[int, ...], list[int]]]:
        """What to append to an empty cache to get this one: paths and their tokens, in order."""
        runs: dict[int, tuple[_Segment, list[int]]] = {}
        for path, tip in self._tips.items():
            line: list[_Segment] = []
            segment: _Segment | None = tip
            while segment is not None:
                line.append(segment)
                segment = segment.parent
            for segment in reversed(line):
                runs.setdefault(id(segment), (segment, []))[1].append(path)
        for segment, paths in runs.values():
            yield tuple(paths), segment.tokens

    def _release(self, segment: _Segment | None) -> None:
        while segment is not None:
            segment.holders -= 1
            if segment.holders:
                return
            self.used -= len(segment.tokens)
            segment = segment.parent
