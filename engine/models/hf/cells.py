"""Which cells of a flat KV cache each path holds, and which of them a batch may see."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.models.base import Span


class PathCells:
    """A path is a list of cell indices in the order of its tokens; a fork copies the list."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.positions = np.zeros(capacity, np.int64)
        """Where in its paths each cell's token stands."""
        self._free = list(range(capacity - 1, -1, -1))
        self._holders = np.zeros(capacity, np.int64)
        self._paths: dict[int, array[int]] = {}

    @property
    def used(self) -> int:
        return self.capacity - len(self._free)

    def length(self, path: int) -> int:
        return len(self._paths.get(path, ()))

    def of(self, path: int) -> np.ndarray:
        """A copy of the path's cells, int64."""
        return np.array(self._paths.get(path, ()), np.int64)

    def fork(self, source: int, target: int) -> None:
        cells = self._paths.get(source)
        if cells is not None:
            self._paths[target] = cells[:]
            self._holders[self.of(source)] += 1

    def append(self, paths: Sequence[int], count: int) -> None:
        """Give `count` new cells to all of `paths`, which are equal so far."""
        start = self.length(paths[0])
        new = array("q", [self._free.pop() for _ in range(count)])
        places = np.array(new, np.int64)
        self.positions[places] = np.arange(start, start + count)
        self._holders[places] = len(paths)
        for path in paths:
            self._paths.setdefault(path, array("q")).extend(new)

    def shorten(self, path: int, length: int) -> None:
        """Let go of what a path holds from position `length` on."""
        cells = self.of(path)[length:]
        self._holders[cells] -= 1
        self._free += cells[self._holders[cells] == 0].tolist()
        if length:
            del self._paths[path][length:]
        else:
            self._paths.pop(path, None)


@dataclass(frozen=True, slots=True)
class Layout:
    """New tokens of some spans as the rows of one batch over the cells they see."""

    new: np.ndarray
    """Cells of the new tokens, shape (rows,)."""
    visible: np.ndarray
    """Cells that any row sees, by position, shape (columns,)."""
    sees: np.ndarray
    """Whether a row sees a column, shape (rows, columns)."""
    positions: np.ndarray
    """Positions of the rows."""
    distances: np.ndarray
    """Tokens from a column to a row, shape (rows, columns)."""


def lay_out(cells: PathCells, spans: Sequence[Span]) -> Layout:
    """Append the spans to `cells`, and say what each of their tokens sees: its own path.

    Columns come in the order of positions, so a path that is computed alone sums over its tokens
    in their own order, wherever its cells lie.
    """
    owned: list[np.ndarray] = []
    for span in spans:
        cells.append(span.paths, len(span.tokens))
        owned.append(cells.of(span.paths[0]))
    visible = np.unique(np.concatenate(owned))
    visible = visible[np.argsort(cells.positions[visible], kind="stable")]
    columns = np.zeros(cells.capacity, np.int64)
    columns[visible] = np.arange(len(visible))
    new = np.concatenate([own[-len(s.tokens) :] for own, s in zip(owned, spans, strict=True)])
    sees = np.zeros((len(new), len(visible)), bool)
    row = 0
    for own, span in zip(owned, spans, strict=True):
        count = len(span.tokens)
        rows = slice(row, row + count)
        sees[rows, columns[own[:-count]]] = True
        sees[rows, columns[own[-count:]]] = np.tri(count, dtype=bool)
        row += count
    positions = cells.positions[new]
    return Layout(new, visible, sees, positions, positions[:, None] - cells.positions[visible])
