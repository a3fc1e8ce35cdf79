"""The tokenizer: one number, one token, and any text comes back whole."""

from __future__ import annotations

from itertools import islice

from engine.seedling.problems import LARGEST, held_out, training_problems
from engine.seedling.tokenizer import SPECIAL, Tokenizer, tokenizer


def test_every_number_is_one_token() -> None:
    for number in range(LARGEST + 1):
        assert len(tokenizer().encode(str(number))) == 1


def test_every_special_token_is_one_token() -> None:
    for name in SPECIAL:
        assert tokenizer().encode(name) == [tokenizer().ids[name]]


def test_stories_and_solutions_are_one_token_a_word() -> None:
    problems = [*islice(training_problems(3), 300), *held_out(100, 3, "templates")]
    words = tokenizer()
    bytes_only = set(range(256))
    for problem in problems:
        for text in (problem.text, problem.solution):
            assert words.decode(words.encode(text)) == text
            split = [i for i in words.encode(text) if i in bytes_only]
            # Only what is one byte long anyway is spelt with a byte.
            assert all(words.decode([i]) in " +-*/={}.,?\\0123456789A" for i in split)


def test_any_text_comes_back_whole() -> None:
    for text in ("", "Příliš žluťoučký kůň", "数学 123456 \t\r\n\n x", "🙂 It's 12,5 %", "\x00"):
        assert tokenizer().decode(tokenizer().encode(text)) == text


def test_a_step_ends_in_one_token() -> None:
    assert tokenizer().decode(tokenizer().encode("apples.\n\nNow")[-2:-1]) == ".\n\n"


def test_it_is_built_the_same_way_every_time() -> None:
    assert Tokenizer().tokens == tokenizer().tokens
    assert Tokenizer().merges == tokenizer().merges
