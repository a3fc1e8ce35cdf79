"""Answers are compared by what they mean, in bounded time, from any thread."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.answers import equivalence, equivalent
from engine.answers.helper import Helper

PLAIN = [
    ("1000", "1,000"),
    ("1000", "1{,}000"),
    ("0.5", "1/2"),
    ("0.5", r"\frac12"),
    ("0.5", r"\dfrac{1}{2}"),
    ("-0.5", r"-\frac{1}{2}"),
    ("3/2", "1 1/2"),
    ("3/2", r"1\frac{1}{2}"),
    ("0.333333", "1/3"),
    ("5", "5."),
    ("5", "$5$"),
    ("5", r"\$5"),
    ("-5", "\N{MINUS SIGN}5"),
    ("90", r"90^\circ"),
    ("50%", r"50\%"),
    ("(1,2)", r"\left( 1, 2 \right)"),
    ("B", "(B)"),
    ("B", r"\text{(B)}"),
    ("Paris", "paris"),
    ("New York", r"\text{New York}"),
]
SYMBOLIC = [
    ("x+1", "1+x"),
    ("(x+1)^2", "x^2+2x+1"),
    (r"2\sqrt{2}", r"\sqrt{8}"),
    ("2^{10}", "1024"),
    ("5", "x = 5"),
    (r"\{1,2\}", r"\{2,1\}"),
    ("0.1", r"10\%"),
]


@pytest.fixture
def no_helper(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails the test if the helper process is asked."""

    def refuse(*answers: str) -> None:
        pytest.fail(f"the helper was asked about {answers}")

    monkeypatch.setattr(equivalence._helper, "ask", refuse)


@pytest.mark.usefixtures("no_helper")
@pytest.mark.parametrize(("a", "b"), PLAIN)
def test_numbers_and_words_are_compared_without_the_helper(a: str, b: str) -> None:
    assert equivalent(a, b)
    assert equivalent(b, a)


@pytest.mark.usefixtures("no_helper")
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("5", "6"),
        ("0.33", "1/3"),
        ("1 1/2", "11/2"),
        ("1000000", "1000001"),
        ("x", "y"),
        ("A", "B"),
        ("listen", "silent"),
        ("even", "5"),
        ("New York", "York New"),
        ("", "0"),
        ("9" * 300, "9" * 299 + "8"),
        ("x" + "+1" * 200, "1+" * 200 + "x"),
        ("1+" + "(" * 20 + "2" + ")" * 20, "3"),
        ("{" * 100, "}" * 100),
    ],
    ids=lambda answer: answer[:12],
)
def test_different_numbers_words_and_monsters_are_told_apart_without_the_helper(
    a: str, b: str
) -> None:
    assert not equivalent(a, b)
    assert not equivalent(b, a)


@pytest.mark.parametrize(("a", "b"), SYMBOLIC)
def test_expressions_are_compared_by_value(a: str, b: str) -> None:
    assert equivalent(a, b)
    assert equivalent(b, a)


@pytest.mark.parametrize(
    ("a", "b"),
    [("x+1", "x+2"), (r"2\sqrt{3}", r"3\sqrt{2}"), ("[0,1]", "[0,1)"), (r"\pi", "3.14")],
)
def test_different_expressions_are_told_apart(a: str, b: str) -> None:
    assert not equivalent(a, b)


@given(st.text(alphabet=r"0123456789.,/-+{}\frac ", max_size=12))
def test_an_answer_is_equivalent_to_itself(answer: str) -> None:
    assert equivalent(answer, answer)


@pytest.mark.parametrize(
    "hostile",
    ["1/0", "10^{500000}", "1e400", "99999!", "\ud800x+1", "x+\x00", "\n\n", "\\", "x^", "\\frac{"],
)
def test_a_hostile_answer_is_different_and_nothing_is_raised(hostile: str) -> None:
    assert not equivalent(hostile, "x+2")


def test_an_answer_that_never_ends_is_given_up_for_good_and_checks_go_on() -> None:
    tower = "9^{9^{9^9}}"
    start = time.monotonic()
    assert not equivalent(tower, "5")
    assert time.monotonic() - start < 60

    start = time.monotonic()
    assert not equivalent(tower, "x+1")
    assert time.monotonic() - start < 1

    assert equivalent("y+1", "1+y")


def test_any_thread_may_ask() -> None:
    pairs = [(f"{i}+x", f"x+{i}") for i in range(8)]
    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(lambda pair: equivalent(*pair), pairs))


def test_a_helper_killed_in_the_middle_of_a_check_is_replaced() -> None:
    helper = equivalence._helper
    assert helper.ask("x+1", "1+x") is True
    assert helper.pid is not None
    victim = helper.pid
    replies: list[object] = []
    asking = threading.Thread(target=lambda: replies.append(helper.ask("7^{7^{7^7}}")))
    asking.start()
    time.sleep(0.2)
    os.kill(victim, signal.SIGTERM)
    asking.join(timeout=60)

    assert replies == [None]
    assert helper.ask("x+1", "1+x") is True
    assert helper.pid not in (None, victim)


def test_a_helper_that_cannot_start_makes_expressions_different(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    helper = Helper()
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    monkeypatch.setattr(equivalence, "_helper", helper)
    assert not equivalent("q+1", "1+q")
    assert helper.pid is None


def test_importing_answers_and_comparing_numbers_loads_no_sympy() -> None:
    program = (
        "import sys; from engine.answers import equivalent; assert equivalent('1/2', '0.5');"
        "sys.exit('sympy' in sys.modules or 'math_verify' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_the_helper_ends_with_the_process_that_started_it() -> None:
    program = (
        "from engine.answers import equivalence, equivalent; equivalent('x+1', '1+x');"
        "print(equivalence._helper.pid)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert not psutil.pid_exists(int(done.stdout))
