"""A model that was away goes on as if it had not been, to the last bit."""

from __future__ import annotations

import numpy as np
import psutil
import pytest

from engine.models.base import Interrupted, Span
from engine.models.llama import LlamaModel, LlamaWeights
from engine.models.stop import StopSignal
from engine.seedling import generator_path
from tests.engine.real_models import append, greedy, opened

TEXT = "Tom has 3 bags with 4 apples each. Tom finds 5 apples. How many apples does Tom have now?"


def loaded(name: str, request: pytest.FixtureRequest) -> LlamaWeights:
    weights: LlamaWeights = request.getfixturevalue(name)
    weights.load()  # whatever a test left
    return weights


def story(model: LlamaModel, pause: bool, *, weights: bool, save: bool) -> list[np.ndarray]:
    """Logits of a small tree that is forked, pruned and written on, with or without pauses."""

    def rest() -> None:
        if pause:
            model.sleep(weights=weights, save=save)

    model.reset()
    rows: list[np.ndarray] = []
    opening = model.vocabulary.tokenize(TEXT)
    model.forward([Span((0,), opening, ())])
    for path in (1, 2, 3):
        model.fork(0, path)
    rest()
    rows.append(model.forward([Span((p,), [20 + p, 30, 31 + p]) for p in (1, 2, 3)]).copy())
    rest()
    model.drop(2)  # while away
    model.fork(1, 4)
    model.fork(1, 5)
    rows.append(model.forward([Span((4,), [40]), Span((5,), [41]), Span((3,), [42, 43])]).copy())
    model.drop(4)
    rest()
    model.fork(3, 2)
    for token in (50, 51):
        rows.append(model.forward([Span((1,), [token]), Span((5,), [token]), Span((2,), [9])]))
        rows[-1] = rows[-1].copy()
        rest()
    return rows


@pytest.mark.parametrize("name", ["seedling_generator", "smollm2", "gemma"])
def test_what_was_saved_gives_the_same_logits_to_the_last_bit(
    name: str, request: pytest.FixtureRequest
) -> None:
    """With the weights away, and with the cache alone away."""
    weights = loaded(name, request)
    with opened(weights, paths=6) as model:
        expected = story(model, False, weights=False, save=True)
        for away in (True, False):
            found = story(model, True, weights=away, save=True)
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_array_equal(one, other)
    weights.load()


def test_a_quantised_cache_comes_back_as_it_was(seedling_generator: LlamaWeights) -> None:
    with opened(seedling_generator, paths=6, cache="q8_0") as model:
        expected = story(model, False, weights=False, save=True)
        found = story(model, True, weights=False, save=True)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_is_computed_again_gives_the_same_logits_up_to_rounding(
    seedling_generator: LlamaWeights,
) -> None:
    """A batch of another size is rounded in another way by some types of weights."""
    with opened(seedling_generator, paths=6) as model:
        expected = story(model, False, weights=True, save=False)
        found = story(model, True, weights=True, save=False)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=0.01)
    seedling_generator.load()


def test_its_bytes_are_gone_while_it_sleeps() -> None:
    weights = LlamaWeights(generator_path())
    process = psutil.Process()
    before = process.memory_info().rss
    with opened(weights, capacity=32768) as model:
        append(model, 0, [5, 6, 7])
        awake = process.memory_info().rss - before
        model.sleep(weights=True, save=True)
        asleep = process.memory_info().rss - before
        assert not model.awake
        assert awake > 60 << 20
        assert asleep < 4 << 20
        assert 0 < model.saved_bytes < 1 << 20
    weights.close()


def test_text_is_read_while_the_weights_are_away(seedling_generator: LlamaWeights) -> None:
    with opened(seedling_generator) as model:
        tokens = model.vocabulary.tokenize(TEXT)
        model.sleep(weights=True, save=True)
        assert model.vocabulary.tokenize(TEXT) == tokens
        assert not model.awake
    seedling_generator.load()


def test_reset_forgets_what_was_saved(seedling_generator: LlamaWeights) -> None:
    with opened(seedling_generator) as model:
        expected = greedy(model, 0, append(model, 0, [5, 6]), 8)
        model.sleep(weights=False, save=True)
        model.reset()
        assert model.used == model.saved_bytes == 0
        assert greedy(model, 0, append(model, 0, [5, 6]), 8) == expected


@pytest.mark.parametrize("save", [True, False])
def test_a_stop_while_it_wakes_leaves_it_asleep_and_whole(
    seedling_generator: LlamaWeights, save: bool
) -> None:
    stop = StopSignal()
    with opened(seedling_generator, stop=stop) as model:
        expected = greedy(model, 0, append(model, 0, [5, 6, 7]), 4)
        model.reset()
        append(model, 0, [5, 6])
        model.sleep(weights=True, save=save)
        stop.set()
        with pytest.raises(Interrupted):
            model.wake()
        assert not model.awake
        stop.clear()
        assert greedy(model, 0, append(model, 0, [7]), 4) == expected


def test_weights_go_to_the_device_that_llama_cpp_knows_by_the_name() -> None:
    """Here that is the processor, the only one there is."""
    weights = LlamaWeights(generator_path(), device="CPU")
    with opened(weights) as model:
        assert append(model, 0, [5, 6]).shape == (weights.vocabulary.size,)
    weights.close()
