"""Where a step ends, and that none of its text is lost."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.models.llama import LlamaWeights
from engine.models.step_text import StepText


def written(*pieces: bytes) -> StepText:
    step = StepText()
    for piece in pieces:
        assert not step.ended
        step.append(piece)
    return step


@pytest.mark.parametrize("weights", ["smollm2", "gemma", "seedling_generator"])
def test_every_token_that_ends_in_the_delimiter_ends_a_step(
    weights: str, request: pytest.FixtureRequest
) -> None:
    loaded: LlamaWeights = request.getfixturevalue(weights)
    vocabulary = loaded.vocabulary
    pieces = [vocabulary.piece(token) for token in range(vocabulary.size)]
    ending = [piece for piece in pieces if piece.endswith(b"\n\n")]
    assert ending
    for piece in ending:
        assert written(b"so", piece).ended
        assert written(piece).ended == bool(piece.strip())


def test_a_delimiter_across_two_tokens_ends_a_step() -> None:
    assert not written(b"a = 1.\n").ended
    assert written(b"a = 1.\n", b"\n").ended
    assert written(b"a = 1.\n", b"\nSo").ended


def test_blank_lines_before_the_first_word_do_not_end_a_step() -> None:
    assert not written(b"\n\n", b" \n\n", b"So").ended
    assert written(b"\n\n", b" \n\n", b"So", b"\n\n").ended


def test_lines_without_a_blank_one_between_them_are_one_step() -> None:
    assert not written(b"a\n", b"b\n", b"c\n", b" \n").ended


@given(text=st.text(), cuts=st.lists(st.integers(0, 60)))
def test_characters_split_over_tokens_are_streamed_whole(text: str, cuts: list[int]) -> None:
    data = text.encode()
    edges = [0, *sorted(cuts), len(data)]
    step = StepText()
    parts = [step.append(data[start:end]) for start, end in pairwise(edges)]
    assert "".join(parts) + step.finish() == text


def test_bytes_that_are_no_text_are_replaced_and_nothing_after_them_is_lost() -> None:
    step = StepText()
    assert [step.append(b"a\xff"), step.append(b"b\xe2\x82"), step.finish()] == [
        "a\ufffd",
        "b",
        "\ufffd",
    ]


def test_a_character_cut_at_the_end_of_a_step_is_completed_by_the_next_one() -> None:
    first = StepText()
    assert first.append("aé".encode()[:-1]) == "a"
    assert StepText(first.incomplete).append("é".encode()[-1:] + b"b") == "éb"
