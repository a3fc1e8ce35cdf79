"""Arithmetic to compare formulas by: random expressions, and what a line of text is worth.

All values are residues modulo a prime, so that division is exact. A root is some function of what
is under it, no matter which.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from hypothesis import strategies as st

_PRIME = 1_000_003
_LETTERS = {"a": 17, "b": 512_009, "x": 77_773, "y": 999_001}


class UndefinedError(Exception):
    """Division by nothing."""


@dataclass(frozen=True)
class Expression:
    """A formula and its value; `level` tells how tightly its parts hang together."""

    latex: str
    value: int
    level: int
    """0 sum, 1 product with signs, 2 what can be a factor, 3 what can have an exponent."""

    def at(self, level: int) -> str:
        """In brackets where it is too loose."""
        return self.latex if self.level >= level else rf"\left({self.latex}\right)"


def _over(top: int, bottom: int) -> int:
    if bottom % _PRIME == 0:
        raise UndefinedError
    return top * pow(bottom, -1, _PRIME) % _PRIME


def _root(value: int) -> int:
    return (value * value + 12_345) % _PRIME


def expressions() -> st.SearchStrategy[Expression]:
    numbers = st.integers(1, 99).map(lambda n: Expression(str(n), n, 3))
    letters = st.sampled_from(sorted(_LETTERS)).map(lambda c: Expression(c, _LETTERS[c], 3))
    return st.recursive(st.one_of(numbers, letters), _larger, max_leaves=10)


def _larger(parts: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    pairs = st.tuples(parts, parts)
    return st.one_of(
        pairs.map(lambda p: _make(rf"{p[0].at(0)}+{p[1].at(1)}", p[0].value + p[1].value, 0)),
        pairs.map(lambda p: _make(rf"{p[0].at(0)}-{p[1].at(1)}", p[0].value - p[1].value, 0)),
        pairs.map(lambda p: _make(rf"{p[0].at(1)}\cdot {p[1].at(1)}", p[0].value * p[1].value, 1)),
        pairs.filter(_can_touch).map(
            lambda p: _make(rf"{p[0].at(2)}{p[1].at(2)}", p[0].value * p[1].value, 1)
        ),
        pairs.filter(lambda p: p[1].value % _PRIME != 0).map(
            lambda p: _make(rf"{p[0].at(2)}\div {p[1].at(2)}", _over(p[0].value, p[1].value), 1)
        ),
        pairs.filter(lambda p: p[1].value % _PRIME != 0).map(
            lambda p: _make(
                rf"\frac{{{p[0].latex}}}{{{p[1].latex}}}", _over(p[0].value, p[1].value), 2
            )
        ),
        parts.map(lambda p: _make(rf"\sqrt{{{p.latex}}}", _root(p.value), 2)),
        st.tuples(parts, st.integers(2, 12)).map(
            lambda p: _make(rf"{p[0].at(3)}^{{{p[1]}}}", pow(p[0].value, p[1], _PRIME), 2)
        ),
    )


def _make(latex: str, value: int, level: int) -> Expression:
    return Expression(latex, value % _PRIME, level)


def _can_touch(pair: tuple[Expression, Expression]) -> bool:
    """No digit right after a number, nor a quotient of numbers: that could be a mixed one."""
    first, second = pair[0].at(2), pair[1].at(2)
    return not second[0].isdigit() and not (first[-1].isdigit() and second.startswith(r"\frac"))


def value_of(text: str, *, tight: bool) -> int:
    """What a line of arithmetic is worth.

    Args:
        tight: `ab` binds tighter than `a/b`, so that `1/2x` is `1/(2x)`.

    Raises:
        UndefinedError: something is divided by nothing.
    """
    reader = _Reader(text.replace(" ", ""), tight)
    value = reader.sum()
    assert not reader.rest, reader.rest
    return value % _PRIME


class _Reader:
    def __init__(self, text: str, tight: bool) -> None:
        self.rest = text
        self._tight = tight

    def _take(self, signs: str) -> str:
        if self.rest and self.rest[0] in signs:
            sign, self.rest = self.rest[0], self.rest[1:]
            return sign
        return ""

    def sum(self) -> int:
        value = self._product()
        while sign := self._take("+-"):
            value += self._product() if sign == "+" else -self._product()
        return value

    def _product(self) -> int:
        factor = self._touching if self._tight else self._power
        value = factor()
        while True:
            if self._take("·"):
                value *= factor()
            elif self._take("/÷"):
                value = _over(value, factor())
            elif self._starts_factor():
                value *= factor()
            else:
                return value

    def _touching(self) -> int:
        value = self._power()
        while self._starts_factor():
            value *= self._power()
        return value

    def _starts_factor(self) -> bool:
        return bool(self.rest) and (self.rest[0] in "(√" or self.rest[0] in _LETTERS)

    def _power(self) -> int:
        value = self._atom()
        digits = ""
        while self.rest and self.rest[0] in "⁰¹²³⁴⁵⁶⁷⁸⁹":
            digits += unicodedata.normalize("NFKC", self._take(self.rest[0]))
        return pow(value, int(digits), _PRIME) if digits else value

    def _atom(self) -> int:
        if self._take("√"):
            return _root(self._atom())
        if self._take("("):
            value = self.sum()
            assert self._take(")")
            return value
        digits = ""
        while digit := self._take("0123456789"):
            digits += digit
        return int(digits) if digits else _LETTERS[self._take("".join(_LETTERS))]
