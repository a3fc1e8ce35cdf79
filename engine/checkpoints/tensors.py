"""A tensor that lies in a file and is read when it is wanted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Protocol

import numpy as np

_PART = 1 << 24
"""Values read at once by `parts`: 64 MiB as float32."""


class StoredTensor(Protocol):
    """One tensor of a file."""

    @property
    def name(self) -> str: ...

    @property
    def shape(self) -> tuple[int, ...]: ...

    def rows(self, start: int, stop: int) -> np.ndarray:
        """Rows `start` to `stop` of the first dimension as float32, a copy.

        Raises:
            EngineError: the values are of a type that holds no weights.
        """
        ...


def values(tensor: StoredTensor) -> np.ndarray:
    """All of it as float32, in its own shape."""
    count = tensor.shape[0] if tensor.shape else 1
    return tensor.rows(0, count).reshape(tensor.shape)


def parts(tensor: StoredTensor) -> Iterator[np.ndarray]:
    """All of it as float32, some rows at a time, so that little of it is in memory at once."""
    count = tensor.shape[0] if tensor.shape else 1
    step = max(1, _PART // max(1, prod(tensor.shape[1:])))
    for start in range(0, count, step):
        yield tensor.rows(start, min(count, start + step))


def missing_text(names: Sequence[str]) -> str:
    """Says which tensors are missing: `a is missing`, `a and 2 more are missing`."""
    more = len(names) - 1
    return f"{names[0]} and {more:,} more are missing" if more else f"{names[0]} is missing"
