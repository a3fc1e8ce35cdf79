"""A forked path computes what the same path computes alone, on every kind of attention."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from engine.errors import EngineError
from engine.models.base import Interrupted, Span
from engine.models.llama import LlamaModel, LlamaWeights
from engine.models.stop import StopSignal
from tests.engine.real_models import append, greedy, opened

TOLERANCE = 0.05
"""Largest difference of a logit: cells in another order change the last bits. A batch of another
size changes more in a quantised model (0.8 was seen), so like is compared with like."""
TEXT = (
    "Tom has three red apples and his sister gives him two green ones. How many apples are there "
    "now? First we count the red apples, then the green ones, and at last we add the two numbers."
)
ENDINGS = (" The answer is", " Tom eats one", " His sister")


def alone(
    model: LlamaModel, prefix: Sequence[int], ending: Sequence[int], count: int
) -> tuple[np.ndarray, list[int]]:
    """Logits and greedy continuation of a path in an empty cache."""
    model.reset()
    model.forward([Span((0,), prefix, ())])
    logits = append(model, 0, ending)
    return logits, greedy(model, 0, logits, count)


def forked(model: LlamaModel, prefix: Sequence[int], count: int) -> list[int]:
    """`count` paths that share a prefix in an otherwise empty cache."""
    model.reset()
    model.forward([Span((0,), prefix, ())])
    paths = list(range(1, count + 1))
    for path in paths:
        model.fork(0, path)
    model.drop(0)
    return paths


def check_forks(
    model: LlamaModel, prefix: Sequence[int], count: int, texts: Sequence[str] = ENDINGS
) -> None:
    endings = [model.vocabulary.tokenize(text) for text in texts]
    expected = [alone(model, prefix, ending, count) for ending in endings]
    paths = forked(model, prefix, len(endings))
    rows = [append(model, path, ending) for path, ending in zip(paths, endings, strict=True)]
    for path, row, (logits, text) in zip(paths, rows, expected, strict=True):
        assert np.abs(row - logits).max() < TOLERANCE
        assert greedy(model, path, row, count) == text


def check_batch(model: LlamaModel, prefix: Sequence[int]) -> None:
    endings = [model.vocabulary.tokenize(text) for text in ENDINGS]
    paths = forked(model, prefix, len(endings))
    spans = [Span((path,), ending) for path, ending in zip(paths, endings, strict=True)]
    together = model.forward(spans).copy()
    model.reset()
    for path in paths:
        model.forward([Span((path,), prefix, ())])
    assert np.abs(model.forward(spans) - together).max() < TOLERANCE


def test_forks_equal_paths_of_their_own(smollm2: LlamaWeights) -> None:
    with opened(smollm2) as model:
        check_forks(model, model.vocabulary.tokenize(TEXT), 8)
        check_batch(model, model.vocabulary.tokenize(TEXT))


def test_forks_equal_paths_of_their_own_where_attention_slides(gemma: LlamaWeights) -> None:
    with opened(gemma) as model:
        check_forks(model, model.vocabulary.tokenize(TEXT, bos=True), 5)
        check_batch(model, model.vocabulary.tokenize(TEXT, bos=True))


def test_forks_beyond_the_window_of_sliding_attention_equal_paths_of_their_own(
    gemma: LlamaWeights,
) -> None:
    with opened(gemma, capacity=768) as model:
        prefix = (model.vocabulary.tokenize(TEXT, bos=True) * 20)[:530]
        check_forks(model, prefix, 2, ENDINGS[:2])


def test_a_span_of_several_paths_equals_separate_spans(seedling_generator: LlamaWeights) -> None:
    tokens = list(range(20, 60))
    with opened(seedling_generator) as model:
        together = model.forward([Span((0, 1, 2), tokens)]).copy()
        assert model.used == len(tokens)
        shared = model.forward([Span((path,), [5 + path]) for path in range(3)]).copy()
        assert model.used == len(tokens) + 3
        model.reset()
        apart = model.forward([Span((path,), tokens) for path in range(3)]).copy()
        assert model.used == 3 * len(tokens)
        separate = model.forward([Span((path,), [5 + path]) for path in range(3)]).copy()
    assert np.abs(apart - together).max() < TOLERANCE
    assert np.abs(shared - separate).max() < TOLERANCE


def test_spans_larger_than_a_batch_are_cut_and_give_the_same_rows(
    seedling_generator: LlamaWeights,
) -> None:
    spans = [
        Span((0,), range(20, 70), [0, 30, 49]),
        Span((1,), range(30, 45), ()),
        Span((1,), range(50, 90), range(40)),
    ]
    with opened(seedling_generator, outputs=64) as model:
        whole = model.forward(spans).copy()
        pair = model.forward([Span((2,), [7, 8], [0, 1])], columns=(3, 9))
    with opened(seedling_generator, outputs=8, batch=16) as model:
        cut = model.forward(spans).copy()
        columns = model.forward([Span((2,), [7, 8], [0, 1])], columns=(3, 9))
        assert model.length(0) == 50
        assert model.length(1) == 55
    assert whole.shape == (43, seedling_generator.vocabulary.size)
    assert np.abs(whole - cut).max() < TOLERANCE
    assert pair.shape == (2, 2)
    assert np.abs(pair - columns).max() < TOLERANCE


def test_a_span_of_several_batches_without_outputs_has_as_many_columns_as_were_asked_for(
    seedling_generator: LlamaWeights,
) -> None:
    with opened(seedling_generator, batch=16) as model:
        assert model.forward([Span((0,), range(40), ())], columns=(3, 9)).shape == (0, 2)
        whole = model.forward([Span((0,), range(40), ())])
        assert whole.shape == (0, model.vocabulary.size)


def test_a_computation_is_seen_to_get_on_with_each_batch(seedling_generator: LlamaWeights) -> None:
    beats: list[int] = []
    stop = StopSignal(lambda: beats.append(len(beats)))
    with opened(seedling_generator, batch=16, stop=stop) as model:
        append(model, 0, range(100, 140))
    assert beats == [0, 1, 2]


def test_a_stop_interrupts_a_computation(smollm2: LlamaWeights) -> None:
    stop = StopSignal()
    with opened(smollm2, stop=stop) as model:
        stop.set()
        with pytest.raises(Interrupted):
            append(model, 0, range(100, 400))
        stop.clear()
        model.reset()
        assert len(append(model, 0, [100])) == model.vocabulary.size


def test_a_file_with_damaged_metadata_is_refused_in_llama_cpps_words(
    seedling_generator: LlamaWeights, tmp_path
) -> None:
    damaged = tmp_path / "damaged.gguf"
    data = seedling_generator.path.read_bytes()
    damaged.write_bytes(data.replace(b"llama.block_count", b"llama.brick_count"))
    with pytest.raises(EngineError, match=r"cannot load damaged.gguf: .*block_count"):
        LlamaWeights(damaged)
