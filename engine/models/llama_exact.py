"""What makes a path's logits on a processor the same bits whatever they are computed with.

llama.cpp has several ways to multiply a matrix of a type, and chooses by the number of rows. They
sum in different orders, and some round the activations in their own way, so that a path would get
other logits in another company. Where there is a choice, all rows go the way a single one goes;
where there is none, no row goes alone. Attention of a single row is shared among threads and summed
in their parts, so a pass has two rows, unless its cache is full to the last cell.
"""

from __future__ import annotations

import os
from typing import Any

from engine.models.gguf import Header

ROWS = 56
"""Tokens a graph computes at most. From 64 on, attention sums in another way."""
_NEVER_ALONE = frozenset({0, 1, 2, 6, 8, 20, 30})
"""Tensor types for which several rows have a way of their own that cannot be turned off: F32, F16,
Q4_0, Q5_0, Q8_0, IQ4_NL and BF16."""


def one_way(params: Any) -> None:
    """Have weights that are about to be loaded multiplied row by row.

    This gives up the faster ways for several rows of K-quants, and the second copy of the weights
    that one of them needs.

    Args:
        params: llama.cpp's `llama_model_params`.
    """
    params.use_extra_bufts = False
    os.environ["GGML_CPU_TILED_MM"] = "0"  # read by llama.cpp when it first multiplies


def read_in_pairs(header: Header) -> bool:
    """Whether a row whose logits alone are wanted would get other bits than one among several.

    llama.cpp computes the end of its last layer for the wanted rows only.
    """
    return any(len(tensor.shape) > 1 and tensor.kind in _NEVER_ALONE for tensor in header.tensors)
