"""On a processor a path's logits are the same bits whatever it is computed with."""

from __future__ import annotations

import numpy as np
import pytest

from engine.models.base import Span
from engine.models.llama import LlamaModel, LlamaWeights
from tests.engine.real_models import opened

TEXT = "Tom has 12 apples. He buys 7 more apples. How many apples does Tom have?"


@pytest.fixture(params=["seedling_generator", "smollm2"])
def weights(request: pytest.FixtureRequest) -> LlamaWeights:
    return request.getfixturevalue(request.param)


def alone(model: LlamaModel, tokens: list[int]) -> np.ndarray:
    """The last logits of a path that is fed token by token."""
    rows = [model.forward([Span((0,), [token])]).copy() for token in tokens]
    model.drop(0)
    return rows[-1][0]


def test_a_single_row_gives_the_logits_it_gives_in_company(weights: LlamaWeights) -> None:
    with opened(weights, 512, 6) as model:
        tokens = model.vocabulary.tokenize(TEXT)
        expected = alone(model, tokens)
        rows = np.empty((3, 0))
        for token in tokens:
            rows = model.forward([Span((0,), [token]), Span((1,), [token]), Span((2,), [token])])
        assert np.array_equal(rows[0], expected)
        assert np.array_equal(rows[0], rows[2])


def test_a_row_that_starts_a_batch_of_its_own_is_no_exception(weights: LlamaWeights) -> None:
    with opened(weights, 512, 6) as model:
        tokens = (model.vocabulary.tokenize(TEXT) * 4)[:57]
        expected = alone(model, tokens)
        assert np.array_equal(model.forward([Span((0,), tokens)])[0], expected)


def test_cells_freed_in_between_do_not_matter(weights: LlamaWeights) -> None:
    with opened(weights, 512, 6) as model:
        tokens = model.vocabulary.tokenize(TEXT)
        expected = alone(model, tokens)
        model.reset()
        half = len(tokens) // 2
        model.forward([Span((1,), tokens * 3, ())])
        model.forward([Span((0,), tokens[:half], ())])
        model.drop(1)
        while model.used + 40 < model.capacity:  # until what was dropped has to be reused
            model.forward([Span((2,), tokens[:30], ())])
        rows = [model.forward([Span((0,), [token])]).copy() for token in tokens[half:]]
        assert np.array_equal(rows[-1][0], expected)


def test_a_saved_path_goes_on_as_it_would_have(weights: LlamaWeights) -> None:
    with opened(weights, 512, 6) as model:
        tokens = model.vocabulary.tokenize(TEXT)
        expected = alone(model, tokens)
        model.forward([Span((0,), tokens[:5], ())])
        model.fork(0, 1)
        model.forward([Span((1,), tokens[5:-1], ())])
        saved = model.save(1, 5)
        assert saved.length == len(tokens) - 6
        assert saved.bytes > 0
        model.drop(1)
        model.forward([Span((2,), tokens, ())])  # others come in between
        model.fork(0, 3)
        model.restore(3, saved)
        assert model.length(3) == len(tokens) - 1
        assert np.array_equal(model.forward([Span((3,), tokens[-1:])])[0], expected)
