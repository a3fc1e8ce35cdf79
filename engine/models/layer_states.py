"""Hidden states of every layer, from llama.cpp's evaluation callback.

llama.cpp names the output of layer `i` `l_out-i`. The callback is asked about every tensor of a
graph before it is computed, and shown those it asked for afterwards; each is summed over the spans
at once, so that no more than one layer's states are held.
"""

from __future__ import annotations

import ctypes
from typing import Any

import llama_cpp
import numpy as np
from llama_cpp._ggml import libggml

_NAME = b"l_out-"


class _Tensor(ctypes.Structure):
    """The beginning of llama.cpp's `ggml_tensor`."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("buffer", ctypes.c_void_p),
        ("ne", ctypes.c_int64 * 4),
    )


libggml.ggml_get_name.argtypes = [ctypes.c_void_p]
libggml.ggml_get_name.restype = ctypes.c_char_p
libggml.ggml_backend_tensor_get.argtypes = [
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_size_t,
]
libggml.ggml_backend_tensor_get.restype = None


class LayerStates:
    """Sums states over the spans of a batch, layer by layer.

    Args:
        layers: how many the model has; the last one's states are read elsewhere, after the final
            norm.
        rows: tokens of a batch that are computed at once.
    """

    def __init__(self, layers: int, width: int, rows: int) -> None:
        self._layers = layers
        self._width = width
        self._rows = np.empty((rows, width), np.float32)
        self._sums: np.ndarray | None = None
        self._spans: np.ndarray = np.empty(0, np.int64)
        self._seen = [0] * layers
        self._names = {b"%s%d" % (_NAME, i): i for i in range(layers - 1)}
        self.callback: Any = llama_cpp.ggml_backend_sched_eval_callback(self._called)

    def begin(self, spans: np.ndarray, sums: np.ndarray) -> None:
        """Add what the next batch computes to `sums`.

        Args:
            spans: of every token of the batch, the row of `sums` it belongs to, or -1.
            sums: float32, shape (spans, layers, width).
        """
        self._spans, self._sums = spans, sums
        self._seen = [0] * self._layers

    def end(self) -> None:
        self._sums = None

    def _called(self, tensor: Any, ask: bool, data: Any) -> bool:
        if self._sums is None:
            return not ask
        layer = self._names.get(libggml.ggml_get_name(tensor))
        if layer is None:
            return not ask
        if not ask:
            self._add(tensor, layer)
        return True

    def _add(self, tensor: Any, layer: int) -> None:
        assert self._sums is not None
        count = int(ctypes.cast(tensor, ctypes.POINTER(_Tensor)).contents.ne[1])
        rows = self._rows[:count]
        libggml.ggml_backend_tensor_get(tensor, rows.ctypes.data, 0, rows.nbytes)
        start = self._seen[layer]
        self._seen[layer] = start + count
        add_rows(self._sums[:, layer], self._spans[start : start + count], rows)


def add_rows(sums: np.ndarray, spans: np.ndarray, rows: np.ndarray) -> None:
    """Add each of `rows` to the row of `sums` that `spans` names; -1 names none."""
    wanted = spans >= 0
    np.add.at(sums, spans[wanted], rows[wanted])
