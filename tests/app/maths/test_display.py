"""Formulas on lines of their own."""

import pytest

from app.maths import render


@pytest.mark.parametrize(
    ("latex", "lines"),
    [
        (
            r"x = \frac{-b\pm\sqrt{b^2-4ac}}{2a}",
            [
                "     -b ± √(b² - 4ac)",
                "x = ──────────────────",
                "            2a",
            ],
        ),
        (
            r"\sum_{n=1}^{\infty}\frac{1}{n^2} = -\frac{\pi^2}{6}\frac{1}{x}",
            [
                " ∞   1        π²   1",
                " ∑  ──── = - ──── ───",
                "n=1  n²       6    x",
            ],
        ),
        (
            r"f(x)=\begin{cases}x^2 & \text{if } x\ge 0\\ -x & \text{otherwise}\end{cases}",
            [
                "f(x) = ⎰x²  if x ≥ 0",
                "       ⎱-x  otherwise",
            ],
        ),
        (
            r"\begin{pmatrix}1&2\\-3&4\end{pmatrix}\begin{bmatrix}x\\y\\z\end{bmatrix}^T",
            [
                "       ⎡x⎤ᵀ",
                "⎛1   2⎞⎢y⎥",
                "⎝-3  4⎠⎣z⎦",
            ],
        ),
        (
            r"\left(\frac{a}{b}\right)^2",
            [
                "⎛ a ⎞²",
                "⎜───⎟",
                "⎝ b ⎠",
            ],
        ),
        (
            r"\begin{aligned} a &= b + c \\ &= d \\[4pt] &\quad + f\end{aligned}",
            [
                "a = b + c",
                "  = d",
                "   + f",
            ],
        ),
        (r"x = 1 \\ y = 2", ["x = 1", "y = 2"]),
        (
            r"\binom{n}{k}",
            [
                "⎛n⎞",
                "⎜ ⎟",
                "⎝k⎠",
            ],
        ),
        (
            r"\boxed{42}",
            [
                "┌────┐",
                "│ 42 │",
                "└────┘",
            ],
        ),
        (
            r"\sqrt{\frac{a}{b}}",
            [
                " ⎛ a ⎞",
                "√⎜───⎟",
                " ⎝ b ⎠",
            ],
        ),
        (r"a^2 + b^2 = c^2", ["a² + b² = c²"]),
    ],
)
def test_a_display_formula_is_laid_out(latex: str, lines: list[str]) -> None:
    assert (render(latex, display=True) or "").split("\n") == lines


def test_what_cannot_be_laid_out_may_still_fit_on_a_line() -> None:
    assert render(r"\left\langle \frac{a}{b} \right\rangle", display=True) == "⟨a/b⟩"


def test_what_cannot_be_shown_at_all_stays_raw() -> None:
    assert render(r"\frac{\foo}{2}", display=True) is None
