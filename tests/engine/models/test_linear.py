"""A row of a product is the same bits whatever else is computed with it."""

from __future__ import annotations

import numpy as np
import pytest

from engine.models.linear import linear


@pytest.mark.parametrize(("inputs", "outputs"), [(64, 1), (65, 2), (1536, 1536), (3584, 2)])
def test_rows_in_any_company_give_the_bits_they_give_alone(inputs: int, outputs: int) -> None:
    chance = np.random.default_rng(1)
    rows = chance.normal(size=(33, inputs)).astype(np.float32)
    weight = chance.normal(size=(outputs, inputs)).astype(np.float32)
    together = linear(rows, weight)
    np.testing.assert_allclose(together, rows @ weight.T, rtol=1e-3, atol=1e-3)
    for count in (1, 2, 3, 8, 16):
        for first in range(0, 33 - count, 5):
            company = linear(rows[first : first + count].copy(), weight)
            assert np.array_equal(company, together[first : first + count])


def test_no_rows_give_no_rows() -> None:
    assert linear(np.empty((0, 4), np.float32), np.ones((2, 4), np.float32)).shape == (0, 2)
