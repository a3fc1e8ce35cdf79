"""On a processor a path's logits are the same bits whatever it is computed with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from engine.convert.convert import convert
from engine.models.base import Span
from engine.models.llama import LlamaModel, LlamaWeights
from engine.models.llama_exact import read_in_pairs
from engine.models.stop import StopSignal
from engine.protocol.conversion import Convert
from tests.engine.checkpoints import build
from tests.engine.checkpoints.families import Scale
from tests.engine.real_models import opened

TEXT = "Tom has 12 apples. He buys 7 more apples. How many apples does Tom have?"


@pytest.fixture(scope="module")
def k_quants(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaWeights]:
    """A random Qwen2 in the mixture of types that most published files are of."""
    folder = tmp_path_factory.mktemp("k-quants")
    checkpoint = build("generator", folder / "checkpoint", scale=Scale(width=256, layers=2))
    body = folder / "body.gguf"
    order = Convert(folder=str(checkpoint), kind="q4_k_m", out=str(body), work=str(folder))
    convert(order, lambda _: None)
    weights = LlamaWeights(body)
    yield weights
    weights.close()


@pytest.fixture(params=["seedling_generator", "smollm2", "gemma", "k_quants"])
def weights(request: pytest.FixtureRequest) -> LlamaWeights:
    return request.getfixturevalue(request.param)


def alone(model: LlamaModel, tokens: list[int]) -> np.ndarray:
    """The last logits of a path that is fed token by token."""
    last = fed(model, [0], tokens)
    model.drop(0)
    return last[0]


def fed(model: LlamaModel, paths: Sequence[int], tokens: list[int]) -> np.ndarray:
    """The last logits of paths that are fed side by side, token by token."""
    rows = np.empty((0, 0))
    for token in tokens:
        rows = model.forward([Span((path,), [token]) for path in paths])
    return rows.copy()


def test_a_single_row_gives_the_logits_it_gives_in_company(weights: LlamaWeights) -> None:
    with opened(weights, 512, 6) as model:
        tokens = model.vocabulary.tokenize(TEXT)
        expected = alone(model, tokens)
        rows = fed(model, range(3), tokens)
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
        assert np.array_equal(fed(model, [0], tokens[half:])[0], expected)


def test_dropped_cells_make_room_for_a_row_of_company(weights: LlamaWeights) -> None:
    with opened(weights, 256, 4) as model:
        tokens = model.vocabulary.tokenize(TEXT)
        expected = alone(model, tokens)
        model.reset()
        model.forward([Span((1,), tokens[:1] * (model.capacity - len(tokens)), ())])
        model.drop(1)
        assert np.array_equal(fed(model, [0], tokens)[0], expected)


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


def test_a_path_read_at_its_end_alone_is_no_exception(weights: LlamaWeights) -> None:
    """Where one row is wanted, the last layer is computed for that row only."""
    with opened(weights, 512, 6) as model:
        story = (model.vocabulary.tokenize(TEXT) * 3)[:50]
        for length in range(2, len(story), 3):
            tokens = story[:length]
            rows = model.forward([Span((0,), tokens, (-2, -1))]).copy()
            model.drop(0)
            assert np.array_equal(model.forward([Span((0,), tokens)])[0], rows[1]), length
            model.drop(0)


def test_paths_side_by_side_come_out_as_they_do_alone(weights: LlamaWeights) -> None:
    with opened(weights, 2048, 16, 16) as model:
        tokens = model.vocabulary.tokenize(TEXT)[:12]
        expected = alone(model, tokens)
        for count in (2, 3, 4, 5, 8, 11, 16):
            rows = fed(model, range(count), tokens)
            for path in range(count):
                model.drop(path)
            assert all(np.array_equal(row, expected) for row in rows), count


def test_k_quants_are_read_alone_as_in_company(k_quants: LlamaWeights) -> None:
    assert not read_in_pairs(k_quants.header)


def test_a_long_path_is_no_exception(k_quants: LlamaWeights) -> None:
    """From 512 cells on, llama.cpp shares the attention of a single row among its threads."""
    with opened(k_quants, 1024, 4) as one_thread:
        story = (one_thread.vocabulary.tokenize(TEXT) * 40)[:600]
        one_thread.forward([Span((0,), story, ())])
        saved = one_thread.save(0, 0)
    stop = StopSignal()
    model = LlamaModel(k_quants, capacity=1024, paths=4, outputs=4, stop=stop, threads=2)
    model.restore(0, saved)
    model.fork(0, 1)
    model.fork(0, 2)
    together = model.forward([Span((1,), story[:1]), Span((2,), story[:1])]).copy()
    assert np.array_equal(model.forward([Span((0,), story[:1])])[0], together[0])
    model.close()
