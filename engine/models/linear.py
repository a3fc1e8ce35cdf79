"""Matrix products of which every row is the same bits, whatever it is computed with."""

from __future__ import annotations

import numpy as np


def linear(rows: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Rows of shape (count, inputs) by a weight of shape (outputs, inputs): (count, outputs).

    One after another: a product of matrices sums in an order that depends on how many rows it has,
    and a score would change in its last bits with what else is scored.
    """
    found = np.empty((len(rows), len(weight)), np.result_type(rows, weight))
    for row, out in zip(rows, found, strict=True):
        np.dot(weight, row, out=out)
    return found
