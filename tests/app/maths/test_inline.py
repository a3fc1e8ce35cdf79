# ruff: noqa: RUF001 - signs that look like others are what this is about
"""Formulas on one line: what models write, and what comes out."""

import pytest

from app.maths import render


@pytest.mark.parametrize(
    ("latex", "shown"),
    [
        (r"\frac{-b\pm\sqrt{b^2-4ac}}{2a}", "(-b ± √(b² - 4ac))/(2a)"),
        (r"2^{k+1}", "2ᵏ⁺¹"),
        (r"\binom{n}{k}", "(n choose k)"),
        (r"\dfrac{\sqrt3}{2}", "√3/2"),
        (r"\begin{pmatrix}1 & 2\\ 3 & 4\end{pmatrix}", "(1, 2; 3, 4)"),
        (r"\sum_{n=1}^{\infty} \frac{1}{n^2}", "∑ₙ₌₁^∞ (1/n²)"),
        (r"\overline{AB}", "A̅B̅"),
        (r"\left( x \right)", "(x)"),
        (r"\lim_{x \to 0} \frac{\sin x}{x} = 1", "lim_(x→0) ((sin x)/x) = 1"),
        (r"17 \equiv 3 \pmod{7}", "17 ≡ 3 (mod 7)"),
        (r"\boxed{42}", "⟦42⟧"),
        (
            r"\begin{cases} x^2, & \text{if } x \ge 0 \\ -x, & \text{otherwise} \end{cases}",
            "{x², if x ≥ 0; -x, otherwise}",
        ),
    ],
)
def test_what_common_libraries_get_wrong_is_right(latex: str, shown: str) -> None:
    assert render(latex) == shown


@pytest.mark.parametrize(
    ("latex", "shown"),
    [
        (r"\frac{a+b}{c}", "(a + b)/c"),
        (r"\frac{a}{b+c}", "a/(b + c)"),
        (r"\frac{2a}{b}", "2a/b"),
        (r"\frac{a}{2b}", "a/(2b)"),
        (r"\frac{1}{2}x", "(1/2)x"),
        (r"x\frac{1}{2}", "x(1/2)"),
        (r"\frac{1}{2} \cdot \frac{3}{4}", "1/2 · 3/4"),
        (r"\frac{1}{2}\frac{3}{4}", "(1/2)(3/4)"),
        (r"a \div \frac{b}{c}", "a ÷ (b/c)"),
        (r"a / \frac{b}{c}", "a/(b/c)"),
        (r"a \div -\frac{b}{c}", "a ÷ -(b/c)"),
        (r"\frac{\frac{a}{b}}{c}", "(a/b)/c"),
        (r"\frac{a}{\frac{b}{c}}", "a/(b/c)"),
        (r"\frac{a}{b}^2", "(a/b)²"),
        (r"\frac{a}{b}!", "(a/b)!"),
        (r"\frac{n!}{2}", "n!/2"),
        (r"\frac{2}{n!}", "2/(n!)"),
        (r"\sin\frac{x}{2}", "sin(x/2)"),
        (r"\frac{dy}{dx}", "dy/dx"),
        (r"\frac{1,2}{3}", "(1,2)/3"),
        (r"2\frac12", "2 1/2"),
        (r"2^3\frac12", "2³(1/2)"),
        (r"12\tfrac{1}{2}\text{ cups}", "12 1/2 cups"),
        (r"\frac{x}{2}\text{ cups}", "(x/2) cups"),
        (r"e^{-\frac{x}{2}}", "e^(-x/2)"),
        (r"\left.\frac{x^3}{3}\right|_0^1", "(x³/3)|₀¹"),
    ],
)
def test_a_quotient_stays_the_same_quotient(latex: str, shown: str) -> None:
    assert render(latex) == shown


@pytest.mark.parametrize(
    ("latex", "shown"),
    [
        ("x_1^2", "x₁²"),
        ("x^{-1}", "x⁻¹"),
        ("x^12", "x¹2"),
        ("x^q", "x^(q)"),
        ("x_{ab}^2", "x²_(ab)"),
        ("x_{i_j}", "x_(iⱼ)"),
        ("2^{2^n}", "2^(2ⁿ)"),
        ("{x^2}^3", "(x²)³"),
        ("x^{1/2}", "x^(1/2)"),
        (r"e^{i\pi} + 1", "e^(iπ) + 1"),
        (r"e^{\sin x}", "e^(sin x)"),
        (r"90^\circ", "90°"),
        ("f''(x)", "f′′(x)"),
        (r"\sqrt{2}x", "√(2)x"),
        (r"\sqrt{x+1}", "√(x + 1)"),
        (r"\sqrt[3]{27}", "∛27"),
        (r"2\sqrt[n]{x}", "2(ⁿ√x)"),
        (r"\sqrt{2}^3", "(√2)³"),
        (r"\bar{x}^2", "x̄²"),
        (r"\hat{\theta}", "θ̂"),
        (r"{}_n C_k", "ₙCₖ"),
    ],
)
def test_scripts_and_roots_hang_on_what_they_hung_on(latex: str, shown: str) -> None:
    assert render(latex) == shown


@pytest.mark.parametrize(
    ("latex", "shown"),
    [
        (r"a=-b", "a = -b"),
        (r"2\cdot-3", "2 · -3"),
        (r"|-x|+|y-1|", "|-x| + |y - 1|"),
        (r"1,000 + 1{,}000 + 10,\!000", "1,000 + 1,000 + 10,000"),
        (r"1\,000", "1 000"),
        (r"(1, 2]", "(1, 2]"),
        (r"\{x \mid x > 0\}", "{x ∣ x > 0}"),
        (r"2\sin x\cos x", "2 sin x cos x"),
        (r"\log_2 8", "log₂ 8"),
        (r"\int_0^1 x^2\,dx", "∫₀¹ x² dx"),
        (r"a\bmod b", "a mod b"),
        (r"5\%\text{ of }\$20", "5% of $20"),
        (r"v = 5\,\mathrm{km}", "v = 5 km"),
        (r"\mathbf{v}\ne v", "𝐯 ≠ v"),
        (r"x \not\in \mathbb{R}^n", "x ∉ ℝⁿ"),
        (r"\left\lfloor\dfrac{n}{2}\right\rfloor", "⌊n/2⌋"),
        (r"\angle ABC = 90^{\circ}", "∠ABC = 90°"),
        (r"π ≤ 4", "π ≤ 4"),
    ],
)
def test_signs_stand_as_in_print(latex: str, shown: str) -> None:
    assert render(latex) == shown


@pytest.mark.parametrize(
    "latex",
    [
        r"\foo{x}",
        r"\underbrace{x}_{y}",
        r"\cancel{x}",
        r"\widehat{ABC}",
        r"\begin{tikzpicture}\end{tikzpicture}",
        r"\left[\begin{array}{c|c} 1 & 2 \end{array}\right]",  # the line is part of it
        r"\begin{pmatrix} (1,2) & 3 \end{pmatrix}",  # cells could not be told apart
        r"\begin{aligned} a &= b \\ c &= d \end{aligned}",  # nor lines
        r"{ab}^2",
        r"2\frac12x",
        r"x{}^2",
        r"x^2^3",
        r"x_",
        r"\frac{1}",
        r"\frac{1}{2",
        r"1}",
        r"\left( x",
        r"\right)",
        r"a & b",
        r"a # b",
        r"\text{a $b$ c}",
        "\\text{\x1b[31m}",
        "% a comment",
        "x\u202ey",
        "数",
        "",
        "  ",
    ],
)
def test_what_is_not_known_to_be_right_stays_raw(latex: str) -> None:
    assert render(latex) is None
