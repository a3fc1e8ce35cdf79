"""Compares answers as they are written: as text, as words and as exact numbers."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

MAX_LENGTH = 256
"""Characters beyond which an answer is compared as text only."""
MAX_DEPTH = 8
"""Brackets inside one another beyond which it is; reading them takes cubic time."""
PLACES = 6
"""A decimal with so many places stands for any number that rounds to it."""

_REWRITES = (
    (re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|mbox)\s*\{([^{}]*)\}"), r"\1"),
    (re.compile(r"\\?\$|\\(?:left|right)(?![a-z])|\\[!,;: ]|\^\{?\\circ\}?|°"), ""),
    (re.compile(r"\\[dt]frac"), r"\\frac"),
    (re.compile(r"\\frac\s*(\d)\s*(\d)"), r"\\frac{\1}{\2}"),
    (re.compile(r"\{,\}"), ","),
    (re.compile(r"\\%"), "%"),
    (re.compile("\N{MINUS SIGN}"), "-"),
    (re.compile(r"\(([A-Za-z])\)"), r"\1"),  # the choice (B) is the choice B
    (re.compile(r"(?<!\w)\s+|\s+(?!\w)"), ""),  # the blank of 1 1/2 stays
    (re.compile(r"\.$"), ""),
)
_NUMBER = re.compile(
    r"""(?P<sign>[+-]?)
    (?: (?:(?P<ones>\d+)\ ?)? \\frac\{(?P<top>\d+)\}\{(?P<bottom>\d+)\}
      | (?P<wholes>\d+)\ (?P<part>\d+)/(?P<parts>\d+)
      | (?P<digits>\d{1,3}(?:,\d{3})+|\d+|(?=\.\d))(?:\.(?P<places>\d*))?(?:/(?P<over>\d+))? )""",
    re.VERBOSE | re.ASCII,
)
_WORDS = re.compile(r"(?=.*[^\W\d_]{3})[^\W\d_](?:[^\W\d_]|[\s',.-])*")


def normalised(answer: str) -> str:
    """The answer without the many ways to write the same: spacing, dollars, degrees, ..."""
    answer = answer.strip()
    return answer if len(answer) > MAX_LENGTH else _rewritten(answer)


def same_as_written(a: str, b: str) -> bool | None:
    """Whether two normalised answers are equal; None if that takes mathematics."""
    if a == b:
        return True
    if _is_text(a) or _is_text(b) or len(a) == len(b) == 1:
        return a.casefold() == b.casefold()
    first, second = _number(a), _number(b)
    return _equal_numbers(first, second) if first and second else None


@lru_cache(4096)
def _rewritten(answer: str) -> str:
    for pattern, replacement in _REWRITES:
        answer = pattern.sub(replacement, answer)
    return answer


@lru_cache(4096)
def _is_text(answer: str) -> bool:
    """Whether the answer is not to be read as mathematics.

    Words are not, because reading them multiplies their letters: "listen" is "silent".
    """
    if not answer or len(answer) > MAX_LENGTH or _WORDS.fullmatch(answer):
        return True
    depth = 0
    for character in answer:
        depth += (character in "([{") - (character in ")]}")
        if not 0 <= depth <= MAX_DEPTH:
            return True
    return depth != 0


@lru_cache(4096)
def _number(answer: str) -> tuple[Fraction, int] | None:
    r"""The value and the number of decimal places of 1,000, -.5, 1/2, 1 1/2 or \frac{1}{2}."""
    match = _NUMBER.fullmatch(answer)
    if match is None:
        return None
    sign, ones, top, bottom, wholes, part, parts, digits, places, over = match.groups("")
    over = int(bottom or parts or over or 1) * 10 ** len(places)
    if over == 0:
        return None
    value = int(ones or wholes or 0) + Fraction(int(top or part or _joined(digits, places)), over)
    return (-value if sign == "-" else value), len(places)


def _joined(digits: str, places: str) -> str:
    return digits.replace(",", "") + places


def _equal_numbers(a: tuple[Fraction, int], b: tuple[Fraction, int]) -> bool:
    (first, first_places), (second, second_places) = a, b
    if first == second:
        return True
    places = min((p for p in (first_places, second_places) if p >= PLACES), default=None)
    return places is not None and round(first, places) == round(second, places)
