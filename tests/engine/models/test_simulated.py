"""The simulated model is a token model like any other, and stricter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.models.base import Span, TokenModel
from engine.models.simulated import SimulatedModel
from engine.models.simulated_text import MARKER, STOP, Judge, SimulatedVocabulary, Writer

PATHS = 4
Operation = tuple[str, Any, Any]

tokens = st.lists(st.integers(0, SimulatedVocabulary.size - 1), min_size=1, max_size=6)
paths = st.integers(0, PATHS - 1)
operations: st.SearchStrategy[list[Operation]] = st.lists(
    st.tuples(st.just("append"), paths, tokens)
    | st.tuples(st.just("fork"), paths, paths)
    | st.tuples(st.just("drop"), paths, st.none()),
    max_size=30,
)


def model(capacity: int = 1000, process: Writer | Judge | None = None) -> SimulatedModel:
    return SimulatedModel(process or Writer(7), capacity=capacity, paths=PATHS)


def all_at_once(process: Writer | Judge, path: list[int]) -> np.ndarray:
    """Logits after each token of a path that is computed in an empty cache."""
    return model(process=process).forward([Span((0,), path, range(len(path)))])


def typed(simulated: SimulatedModel) -> TokenModel:
    return simulated


@given(operations, st.sampled_from([Writer(7, opening=2), Judge(7)]))
def test_a_path_is_its_tokens_however_it_came_about(
    script: list[Operation], process: Writer | Judge
) -> None:
    cache = model(process=process)
    known: dict[int, list[int]] = {}
    cells: dict[int, list[object]] = {}
    for what, path, argument in script:
        match what:
            case "append":
                rows = cache.forward([Span((path,), argument, range(len(argument)))])
                known[path] = known.get(path, []) + argument
                cells[path] = cells.get(path, []) + [object() for _ in argument]
                np.testing.assert_array_equal(
                    rows, all_at_once(process, known[path])[-len(argument) :]
                )
            case "fork" if argument not in known:
                cache.fork(path, argument)
                if path in known:
                    known[argument], cells[argument] = known[path], cells[path]
            case "drop":
                cache.drop(path)
                known.pop(path, None)
                cells.pop(path, None)
        assert [cache.length(p) for p in range(PATHS)] == [
            len(known.get(p, [])) for p in range(PATHS)
        ]
        assert cache.used == len({id(cell) for path in cells.values() for cell in path})


@given(tokens, tokens, st.integers(1, PATHS))
def test_a_shared_span_equals_separate_ones(
    before: list[int], after: list[int], count: int
) -> None:
    shared, separate = model(), model()
    both = tuple(range(count))
    first = shared.forward([Span(both, before)])
    rest = shared.forward([Span((path,), after) for path in both])
    whole = separate.forward([Span((path,), before + after) for path in both])
    np.testing.assert_array_equal(rest, whole)
    np.testing.assert_array_equal(first[0], all_at_once(Writer(7), before)[-1])
    assert shared.used == len(before) + count * len(after)
    assert separate.used == count * (len(before) + len(after))


def test_spans_of_one_path_follow_each_other() -> None:
    rows = model().forward([Span((0,), [6, 7]), Span((0,), [8])])
    np.testing.assert_array_equal(rows, all_at_once(Writer(7), [6, 7, 8])[1:])


def test_columns_and_nothing_wanted() -> None:
    whole = model().forward([Span((0,), [6, 7, 8], (0, -1))])
    some = model().forward([Span((0,), [6, 7, 8], (0, -1))], (9, 2))
    np.testing.assert_array_equal(some, whole[:, [9, 2]])
    assert model().forward([Span((0,), [6], ())]).shape == (0, SimulatedVocabulary.size)
    assert whole.dtype == np.float32


def test_reset_frees_everything() -> None:
    cache = model(capacity=3)
    first = cache.forward([Span((0, 1), [6, 7, 8])]).copy()
    cache.reset()
    assert (cache.used, cache.length(0), cache.length(1)) == (0, 0, 0)
    np.testing.assert_array_equal(cache.forward([Span((1,), [6, 7, 8])]), first)


def test_misuse_is_an_error() -> None:
    cache = model(capacity=4)
    cache.forward([Span((0,), [6]), Span((1,), [7])])
    with pytest.raises(ValueError, match="differ"):
        cache.forward([Span((0, 1), [6])])
    with pytest.raises(ValueError, match="not free"):
        cache.fork(0, 1)
    with pytest.raises(ValueError, match="no path"):
        cache.drop(PATHS)
    with pytest.raises(ValueError, match="ascend"):
        cache.forward([Span((0,), [6, 7], (1, 0))])
    with pytest.raises(ValueError, match="do not fit"):
        model(capacity=4).forward([Span((0,), [6] * 5)])


def test_the_interface_is_that_of_a_token_model() -> None:
    assert typed(model()).max_paths == PATHS


def test_text_is_read_as_the_tokens_that_wrote_it() -> None:
    vocabulary = SimulatedVocabulary()
    written = list(range(STOP, vocabulary.size))
    text = b"".join(map(vocabulary.piece, written)).decode()
    assert vocabulary.tokenize(text) == written
    assert all(6 <= token < vocabulary.size for token in vocabulary.tokenize("Two trains: 7km"))


def test_control_tokens_are_read_only_on_request() -> None:
    vocabulary = SimulatedVocabulary()
    assert vocabulary.tokenize("<|step|>", special=True) == [MARKER]
    assert MARKER not in vocabulary.tokenize("<|step|>")
