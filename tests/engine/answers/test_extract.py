"""The final answer is found in the ways models write it."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.answers import extract


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (r"So it is \boxed{42}.", "42"),
        (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"\boxed{\{1, 2\}}", r"\{1, 2\}"),
        (r"\boxed{\left\{x \right.}", r"\left\{x \right."),
        (r"\boxed {7}", "7"),
        (r"\fbox{7}", "7"),
        (r"\boxed{\boxed{5}}", "5"),
        (r"\boxed{$x$}", "x"),
    ],
)
def test_a_box_is_read_to_its_matching_brace(text: str, answer: str) -> None:
    assert extract(text) == answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (r"\boxed{1} no, \boxed{2}", "2"),
        (r"\boxed{1} and then \boxed{2", "1"),
        (r"\boxed{3}, so the answer is 4", "3"),
        (r"\boxed{5} or \boxed{}", "5"),
    ],
)
def test_the_last_finished_box_with_something_in_it_counts(text: str, answer: str) -> None:
    assert extract(text) == answer


def test_an_unfinished_box_counts_if_there_is_no_other() -> None:
    assert extract("\\boxed{\\frac{1}{2}\nand so on") == r"\frac{1}{2}"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("The final answer is $x+1$. I hope it is correct.", "x+1"),
        ("The answer is 5. The final answer is 6. My answer is 7.", "6"),
        ("the answer is 3.5.", "3.5"),
        ("The answer is: **42**", "42"),
        ("Answer: 12 apples", "12 apples"),
        ("The answer is\n\n7\n", "7"),
        (r"The answer is \(x^2\).", "x^2"),
        ("The answer is 1. Wait: the answer is 2.", "2"),
        ("First 5 + 3 = 8.\n#### 42", "42"),
    ],
)
def test_without_a_box_the_last_announced_answer_counts(text: str, answer: str) -> None:
    assert extract(text) == answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("It costs $1,234.50 in total.", "1,234.50"),
        ("x = -5", "-5"),
        ("the range 10-5", "5"),
        ("3 of 4, that is 3/4.", "3/4"),
    ],
)
def test_failing_all_that_the_last_number_counts(text: str, answer: str) -> None:
    assert extract(text) == answer


@pytest.mark.parametrize("text", ["", "I do not know.", r"\boxed{}", r"\boxed{  }"])
def test_a_text_without_an_answer_gives_the_empty_one(text: str) -> None:
    assert extract(text) == ""


@pytest.mark.parametrize("answer", ["a", "t", "m", "2t", "3 m", "5 cm", "h+c", "j", r"\text{(B)}"])
def test_no_letter_of_an_answer_is_lost(answer: str) -> None:
    assert extract(rf"\boxed{{{answer}}}") == answer


@pytest.mark.parametrize(
    "text",
    [
        r"\boxed{" * 15_000,
        "{" * 100_000,
        r"\boxed{" + "{" * 50_000 + "}" * 50_001,
        "answer is " * 10_000,
        "answer is" + " " * 100_000,
        "9" * 100_000,
        "1,111" * 20_000,
        "$" * 100_000,
        r"\boxed{" + "**" * 50_000 + "}",
    ],
    ids=lambda text: text[:12],
)
def test_a_hundred_kilobytes_of_nonsense_take_no_time(text: str) -> None:
    start = time.perf_counter()
    extract(text)
    assert time.perf_counter() - start < 5


@given(st.text(alphabet="\\boxed{}$ answer is#1,.-/\n*", max_size=200))
def test_any_text_has_an_answer_or_none(text: str) -> None:
    assert isinstance(extract(text), str)
