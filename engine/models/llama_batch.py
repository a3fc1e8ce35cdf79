"""A batch of llama.cpp, written through numpy views of its C arrays."""

from __future__ import annotations

import ctypes
from typing import Any

import llama_cpp
import numpy as np

from engine.models.base import Span


class Batch:
    """A reusable llama.cpp batch, written through numpy views of its C arrays."""

    def __init__(self, size: int) -> None:
        self._token = np.zeros(size, np.int32)
        self._position = np.zeros(size, np.int32)
        self._count = np.zeros(size, np.int32)
        self._wanted = np.zeros(size, np.int8)
        self._sets = (ctypes.POINTER(ctypes.c_int32) * (size + 1))()
        self._keep: list[np.ndarray] = []
        self.native: Any = llama_cpp.llama_batch()
        self.native.token = self._token.ctypes.data_as(ctypes.POINTER(ctypes.c_int32))
        self.native.pos = self._position.ctypes.data_as(ctypes.POINTER(ctypes.c_int32))
        self.native.n_seq_id = self._count.ctypes.data_as(ctypes.POINTER(ctypes.c_int32))
        self.native.logits = self._wanted.ctypes.data_as(ctypes.POINTER(ctypes.c_int8))
        self.native.seq_id = ctypes.cast(self._sets, ctypes.POINTER(ctypes.POINTER(ctypes.c_int32)))
        self.size = 0

    def clear(self) -> None:
        self.size = 0
        self._keep.clear()

    def add(self, span: Span, position: int) -> None:
        start, count = self.size, len(span.tokens)
        end = start + count
        self._token[start:end] = span.tokens
        self._position[start:end] = np.arange(position, position + count)
        self._count[start:end] = len(span.paths)
        self._wanted[start:end] = 0
        for index in span.wanted:
            self._wanted[start + (index if index >= 0 else count + index)] = 1
        paths = np.array(span.paths, np.int32)
        self._keep.append(paths)
        pointer = paths.ctypes.data_as(ctypes.POINTER(ctypes.c_int32))
        for index in range(start, end):
            self._sets[index] = pointer
        self.size = self.native.n_tokens = end

    def wanted_rows(self) -> np.ndarray:
        """Places of the wanted tokens in the batch, in order."""
        return np.flatnonzero(self._wanted[: self.size])

    def accompany(self, rows: int) -> np.ndarray:
        """Want a second token where one alone of a graph's `rows` tokens is wanted.

        llama.cpp computes the end of its last layer for the wanted tokens only, and multiplies a
        single row in another way than several, with other last bits.

        Returns:
            The rows of those wanted before, among all rows that llama.cpp gives.
        """
        before = self.wanted_rows()
        for start in range(0, self.size, rows):
            wanted = self._wanted[start : min(start + rows, self.size)]
            if len(wanted) > 1 and np.count_nonzero(wanted) == 1:
                wanted[0 if wanted[1:].any() else 1] = 1
        return np.searchsorted(self.wanted_rows(), before)
