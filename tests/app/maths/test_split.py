"""Which parts of a text are formulas."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.maths import LENGTH, split


def formulas(text: str) -> list[str | None]:
    return [piece.latex for piece in split(text) if piece.latex is not None]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (r"so \(x=1\) and \[y\] and $$z$$ and $w$", ["x=1", "y", "z", "w"]),
        ("$$\na\n= b\n$$", ["\na\n= b\n"]),
        ("there are $12$ apples and $x + y$ pears", ["12", "x + y"]),
        ("the $n$th, the $k^2$-th, $2n$s", ["n", "k^2", "2n"]),
        (
            r"$f(x)$, $ABC$, $3x<5$, $\frac12$, $a_1, a_2$",
            ["f(x)", "ABC", "3x<5", r"\frac12", "a_1, a_2"],
        ),
        (r"about $5\%$ or $50\text{ km}$", [r"5\%", r"50\text{ km}"]),
        (r"- in a list: $$x$$", ["x"]),
        (r"**bold $a*b$ and $c*d$**", ["a*b", "c*d"]),
    ],
)
def test_formulas_are_found(text: str, found: list[str]) -> None:
    assert formulas(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "It costs $5 and $10.",
        "$5, $6 or $7",
        "from $5-$10 to $1,000/$2,000",
        "US$5 = A$7 and 10$ for 2$",
        r"\$x = y\$",
        "$HOME_DIR/$USER and ${PATH}:$PATH",
        "a $ b $ c",
        "`$x^2$` and ``a ` $y$``",
        "```\n$x^2$\n```",
        "~~~tex\n\\[x\\]\n~~~",
        "- item\n  ```\n  $x$\n  ```",
        "```\n$x$ in code that has no end",
        "$x is not closed",
        r"\(x is not closed",
        "$$x\n\ny$$",
        "$$ $$ and \\(\\)",
        r"an escaped backslash \\(x\\)",
        "$" + "x" * 10 + "=" * LENGTH + "$",
    ],
)
def test_prices_code_and_what_is_not_closed_are_no_formulas(text: str) -> None:
    assert formulas(text) == []


def test_maths_goes_on_after_code() -> None:
    assert formulas("```\n$a$\n```\n$b$ `$c$` $d$ ``` $e$") == ["b", "d", "e"]


def test_a_display_formula_is_told_from_one_in_the_line() -> None:
    pieces = split(r"a \[b\] $c$ $$d$$")
    assert [(p.source, p.latex, p.display) for p in pieces] == [
        ("a ", None, False),
        (r"\[b\]", "b", True),
        (" ", None, False),
        ("$c$", "c", False),
        (" ", None, False),
        ("$$d$$", "d", True),
    ]


_FRAGMENTS = st.sampled_from(
    ["$", "$$", "\\(", "\\)", "\\[", "\\]", "`", "```", "~~~", "\n", "\\", "x", "5", " ", "^", ">"]
)


@settings(deadline=None)  # the machine may be busy
@given(st.one_of(st.text(), st.lists(_FRAGMENTS).map("".join)))
def test_the_pieces_are_the_text(text: str) -> None:
    assert "".join(piece.source for piece in split(text)) == text


@pytest.mark.parametrize(
    "unit", ["$x ", "$", "$$a", r"\(", r"\[", "`a``b", "```\n", "~~~\n", "\n\n$", "$x=`"]
)
def test_a_long_text_of_openings_takes_no_long_time(unit: str) -> None:
    begin = time.perf_counter()
    split(unit * (300_000 // len(unit)))
    assert time.perf_counter() - begin < 10
