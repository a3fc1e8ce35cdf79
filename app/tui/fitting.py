"""What goes on one line, the most important first."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len


def fitting(parts: Sequence[str], width: int, *, gap: int) -> list[int]:
    """The places of as many parts as fit, each tried in its turn.

    Args:
        parts: from the most to the least important.
        width: cells that there are.
        gap: cells between two parts.
    """
    kept: list[int] = []
    room = width
    for place, part in enumerate(parts):
        needed = cell_len(part) + (gap if kept else 0)
        if needed <= room:
            kept.append(place)
            room -= needed
    return kept
