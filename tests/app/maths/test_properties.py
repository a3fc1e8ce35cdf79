# ruff: noqa: RUF001 - signs that look like others are what this is about
"""What holds for every formula: its value, its signs, and that nothing breaks the renderer."""

from __future__ import annotations

import time
import unicodedata
from collections import Counter

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from app.maths import LENGTH, NESTING, render
from tests.app.maths.arithmetic import Expression, UndefinedError, expressions, value_of


@settings(deadline=None)  # the machine may be busy
@given(expressions())
def test_a_formula_keeps_its_value(expression: Expression) -> None:
    """Whichever way a reader takes `1/2x`: as `(1/2)x` or as `1/(2x)`."""
    shown = render(expression.latex)
    assume(shown is not None)
    assert shown is not None
    for tight in (False, True):
        try:
            assert value_of(shown, tight=tight) == expression.value, (expression.latex, shown)
        except UndefinedError:
            assume(False)


_LETTERS = st.sampled_from("abcdexyznkABCRT")
_DIGITS = st.integers(0, 999).map(str)
_COMMANDS = {"α": r"\alpha ", "π": r"\pi ", "∞": r"\infty ", "∂": r"\partial "}
_OPERATORS = {"+": "+", "-": "-", "=": "=", "<": "<", "·": r"\cdot ", "≤": r"\le ", "→": r"\to "}

Known = tuple[str, Counter[str]]
"""A formula, and the letters, digits and operators it shows."""


def _atoms() -> st.SearchStrategy[Known]:
    plain = st.one_of(_LETTERS, _DIGITS).map(lambda text: (text, Counter(text)))
    named = st.sampled_from(sorted((_COMMANDS | _OPERATORS).items())).map(
        lambda item: (item[1], Counter(item[0]))
    )
    return st.one_of(plain, named)


def _compound(parts: st.SearchStrategy[Known]) -> st.SearchStrategy[Known]:
    def of(template: str, *extra: str) -> st.SearchStrategy[Known]:
        places = template.count("%s")
        return st.tuples(*[parts] * places).map(
            lambda chosen: (
                template % tuple(latex for latex, _ in chosen),
                sum((signs for _, signs in chosen), Counter("".join(extra))),
            )
        )

    return st.one_of(
        of("%s%s"),
        of("%s %s%s"),
        of(r"\frac{%s}{%s}", "/"),
        of("{%s}^{%s}"),
        of("{%s}_{%s}"),
        of("x_{%s}^{%s}", "x"),
        of(r"\sqrt{%s}"),
        of(r"\left(%s\right)"),
        of("(%s)^{%s}"),
        of(r"\sin %s", "sin"),
        of(r"\sum_{%s}^{%s}%s", "∑"),
        of(r"\boxed{%s}"),
        of(r"\binom{%s}{%s}", "choose"),
        of(r"\text{if }%s", "if"),
    )


def _signs(text: str) -> Counter[str]:
    plain = unicodedata.normalize("NFKC", text).replace("−", "-")
    kept = set("/+-=<·≤→∑∞∂")
    return Counter(c for c in plain if c.isalnum() or c in kept)


@settings(deadline=None)  # the machine may be busy
@given(st.recursive(_atoms(), _compound, max_leaves=12))
def test_no_letter_digit_or_operator_is_lost_or_made(formula: Known) -> None:
    latex, signs = formula
    if (shown := render(latex)) is not None:
        assert _signs(shown) == signs, shown


_FRAGMENTS = r"""
    \frac \sqrt \left( \right) \left. \left\{ \begin{cases} \end{cases} \begin{pmatrix} \\ & { }
    \end{pmatrix} ^ _ ' ( ) [ ] | \text{ \binom \boxed \overline \sum \lim \not \mathbf \pmod \,
    \! \limits \big \middle| \begin{aligned} \end{aligned} x 1 12 . , ; ! + - / = \unknown % ~
"""
_PARTS = st.sampled_from(_FRAGMENTS.split())


@settings(deadline=None)  # the machine may be busy
@given(st.one_of(st.text(), st.lists(_PARTS, max_size=60).map(" ".join)), st.booleans())
def test_nothing_breaks_it(latex: str, display: bool) -> None:
    shown = render(latex, display=display)
    assert shown is None or all(c.isprintable() or c == "\n" for c in shown)


def _hostile() -> list[str]:
    units = ["{", "(", "x^{", r"\frac{", r"\sqrt", r"\left(", r"\frac1", r"\log_{", "x_", r"\bar{"]
    closed = [("{", "}"), ("(", ")"), (r"\sqrt{", "}"), ("x^{", "}"), (r"\log_{x", "}")]
    closed += [(r"\frac{1}{", "}"), (r"\left(\frac{x}{", r"}\right)"), (r"\boxed{", "}")]
    nested = [a * times + "x" + b * times for a, b in closed for times in (NESTING // 2, 300)]
    flat = ["x+" * 2000, "(x)" * 1300, r"\frac12" * 580, "x^2" * 1300, r"x&" * 2000, r"x\\" * 1300]
    return [(unit * LENGTH)[:LENGTH] for unit in units] + nested + flat


@pytest.mark.parametrize("latex", _hostile())
@pytest.mark.parametrize("display", [False, True])
def test_no_formula_takes_long(latex: str, display: bool) -> None:
    begin = time.perf_counter()
    render(latex, display=display)
    assert time.perf_counter() - begin < 3


def test_a_formula_too_long_stays_raw() -> None:
    assert render("x" * LENGTH) == "x" * LENGTH
    assert render("x" * (LENGTH + 1)) is None


def test_nesting_ends_at_its_limit() -> None:
    def nested(times: int) -> str:
        return "(" * times + "x" + ")" * times

    assert render(nested(NESTING)) == nested(NESTING)
    assert render(nested(NESTING + 1)) is None
