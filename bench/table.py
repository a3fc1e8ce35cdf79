"""Markdown tables."""

from __future__ import annotations

from collections.abc import Sequence


def markdown(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A titled table whose columns also line up as plain text; all but the first to the right."""
    cells = [list(header), *([str(cell) for cell in row] for row in rows)]
    widths = [max(3, *(len(row[column]) for row in cells)) for column in range(len(header))]

    def line(row: Sequence[str]) -> str:
        first, *others = zip(row, widths, strict=True)
        aligned = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]
        return f"| {' | '.join(aligned)} |"

    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    return "\n".join([f"**{title}**", "", *map(line, [cells[0], rule, *cells[1:]]), ""])
