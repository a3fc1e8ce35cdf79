"""Rectangles of characters, and how they are put together."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from app.maths.reader import Unknown

_TALL = {
    "(": "⎛⎜⎝", ")": "⎞⎟⎠", "[": "⎡⎢⎣", "]": "⎤⎥⎦", "|": "│││", "‖": "‖‖‖",
    "⌊": "⎢⎢⎣", "⌋": "⎥⎥⎦", "⌈": "⎡⎢⎢", "⌉": "⎤⎥⎥",
}  # fmt: skip
"""Top, middle and bottom of brackets over several lines."""
_BRACES = {"{": "⎧⎪⎨⎩", "}": "⎫⎪⎬⎭"}
_LOW_BRACES = {"{": "⎰⎱", "}": "⎱⎰"}


@dataclass(frozen=True, slots=True)
class Box:
    lines: tuple[str, ...]
    axis: int
    """The line that stands level with what is beside."""

    @classmethod
    def of(cls, text: str) -> Box:
        return cls((text,), 0)

    @property
    def width(self) -> int:
        return max(map(width, self.lines))

    @property
    def depth(self) -> int:
        """Lines below the axis."""
        return len(self.lines) - self.axis - 1


def width(text: str) -> int:
    """The cells a text takes in a terminal."""
    return sum(
        2 if unicodedata.east_asian_width(c) in "WF" else not unicodedata.combining(c) for c in text
    )


def beside(boxes: Sequence[Box]) -> Box:
    """Side by side, on one axis."""
    above = max(box.axis for box in boxes)
    below = max(box.depth for box in boxes)
    lines = [""] * (above + below + 1)
    for box in boxes:
        lines = [
            line + part
            for line, part in zip(lines, _padded(box, above, below, box.width, "<"), strict=True)
        ]
    return Box(tuple(lines), above)


def stacked(*boxes: Box, stroke: bool = False, at: int | None = None) -> Box:
    """One above the other, centred.

    Args:
        stroke: of two, draw the stroke of a fraction between them.
        at: the box whose axis is that of all; without it the axis is between two.
    """
    wide = max(box.width for box in boxes) + 2 * stroke
    parts = [_padded(box, box.axis, box.depth, wide, "^") for box in boxes]
    if at is None:
        parts.insert(1, [("─" if stroke else " ") * wide])
        return Box(tuple(line for part in parts for line in part), len(parts[0]))
    axis = sum(map(len, parts[:at])) + boxes[at].axis
    return Box(tuple(line for part in parts for line in part), axis)


def table(rows: Sequence[Sequence[Box]], align: str, gap: int) -> Box:
    """A grid.

    Args:
        align: `<`, `^` or `>` for each column, over and over.
        gap: blanks between columns.
    """
    widths = [
        max(cell.width for cell in column) for column in zip_longest(*rows, fillvalue=Box.of(""))
    ]
    loose = any(len(cell.lines) > 1 for cells in rows for cell in cells)
    lines: list[str] = []
    for cells in rows:
        above = max(cell.axis for cell in cells)
        below = max(cell.depth for cell in cells)
        columns = [
            _padded(cell, above, below, wide, align[place % len(align)])
            for place, (cell, wide) in enumerate(zip(cells, widths, strict=False))
        ]
        if loose and lines:
            lines.append("")
        lines += [(" " * gap).join(parts) for parts in zip(*columns, strict=True)]
    return Box(tuple(lines), (len(lines) - 1) // 2)


def framed(box: Box) -> Box:
    edge = "─" * (box.width + 2)
    lines = [f"│ {line} │" for line in _padded(box, box.axis, box.depth, box.width, "<")]
    return Box((f"┌{edge}┐", *lines, f"└{edge}┘"), box.axis + 1)


def fence(left: str, box: Box, right: str) -> Box:
    """The box between brackets of its height.

    Raises:
        Unknown: there are no such brackets.
    """
    return beside([_bracket(left, box), box, _bracket(right, box)])


def _bracket(sign: str, box: Box) -> Box:
    height = len(box.lines)
    if height == 1 or not sign:
        return Box.of(sign)
    if sign in _BRACES:
        top, rest, middle, bottom = _BRACES[sign]
        if height == 2:
            return Box(tuple(_LOW_BRACES[sign]), box.axis)
        column = [top, *[rest] * (height - 2), bottom]
        column[min(max(box.axis, 1), height - 2)] = middle
    elif sign in _TALL:
        top, rest, bottom = _TALL[sign]
        column = [top, *[rest] * (height - 2), bottom]
    else:
        raise Unknown
    return Box(tuple(column), box.axis)


def _padded(box: Box, above: int, below: int, wide: int, align: str) -> list[str]:
    """The lines of the box with so many lines above and below its axis, all of one width."""
    lines = [
        *[""] * (above - box.axis),
        *box.lines,
        *[""] * (below - box.depth),
    ]
    return [_aligned(line, wide, align) for line in lines]


def _aligned(line: str, wide: int, align: str) -> str:
    free = wide - width(line)
    left = {"<": 0, "^": free // 2, ">": free}[align]
    return " " * left + line + " " * (free - left)
