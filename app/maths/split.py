# ruff: noqa: RUF001 - signs that look like others are what this is about
"""Finding the formulas in Markdown, in one pass from left to right."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

LENGTH = 4096
"""Longest formula in characters."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of the text; all pieces together are the text, character by character."""

    source: str
    """With its delimiters."""
    latex: str | None = None
    """What is between the delimiters; None where it is not maths."""
    display: bool = False


def split(text: str) -> list[Piece]:
    r"""The text in pieces, formulas apart from the rest.

    Maths is what `\(…\)`, `\[…\]` and `$$…$$` hold, and what `$…$` holds if it looks like it:
    prices do not. There is none in code, nor across blank lines, nor where the end is missing.
    """
    pieces: list[Piece] = []
    done = 0
    for start, end, width in _Scan(text).formulas():
        if start > done:
            pieces.append(Piece(text[done:start]))
        source = text[start:end]
        display = source.startswith(("$$", r"\["))
        pieces.append(Piece(source, source[width:-width], display))
        done = end
    if done < len(text):
        pieces.append(Piece(text[done:]))
    return pieces


_MARK = re.compile(
    r"(?P<fence>^[ \t>]*(?:(?:[-*+]|\d+[.)])[ \t]+)?(?:(?P<ticks>```+)(?=[^`\n]*$)|~~~+))"
    r"|\\(?:.|$)|\$\$?|`+",
    re.MULTILINE | re.DOTALL,
)
_TICKS = re.compile("`+")
_ENDS = {
    r"\(": re.compile(r"(?<!\\)\\\)"),
    r"\[": re.compile(r"(?<!\\)\\\]"),
    "$$": re.compile(r"(?<!\\)\$\$"),
    "$": re.compile(r"(?<!\\)\$"),
    "blank": re.compile(r"\n[ \t]*\n"),
}


class _Scan:
    """One pass over a text. No end is searched for twice, so that a text full of openings
    without ends takes no longer than any other."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._found: dict[str, int] = {}
        self._ticks: dict[int, list[int]] | None = None

    def formulas(self) -> Iterator[tuple[int, int, int]]:
        """Start, end and width of the delimiters of each."""
        place = 0
        while match := _MARK.search(self._text, place):
            mark = match[0]
            place = match.end()
            if match["fence"]:
                place = self._after_fence(match)
            elif mark[0] == "`":
                place = self._after_code(match)
            elif mark in _ENDS and (end := self._end(mark, place)) is not None:
                body = self._text[place:end]
                after = end + len(mark)
                if mark != "$" or self._is_maths(match.start(), body, after):
                    yield match.start(), after, len(mark)
                    place = after

    def _end(self, mark: str, place: int) -> int | None:
        """Where the formula that begins before `place` ends."""
        end = self._next(mark, place)
        if end - place > LENGTH or end == len(self._text) or self._next("blank", place) < end:
            return None
        return end if self._text[place:end].strip() else None

    def _next(self, what: str, place: int) -> int:
        found = self._found.get(what, -1)
        if found < place:
            match = _ENDS[what].search(self._text, place)
            found = self._found[what] = match.start() if match else len(self._text)
        return found

    def _after_fence(self, match: re.Match[str]) -> int:
        sign = match["fence"].lstrip(" \t>-*+.)0123456789")
        end = re.compile(rf"^[ \t>]*{sign}{sign[0]}*[ \t]*$", re.MULTILINE)
        closing = end.search(self._text, match.end())
        return closing.end() if closing else len(self._text)

    def _after_code(self, match: re.Match[str]) -> int:
        """The end of a code span, or of its opening where it has no end."""
        if self._ticks is None:
            self._ticks = defaultdict(list)
            for run in _TICKS.finditer(self._text):
                self._ticks[len(run[0])].append(run.start())
        runs = self._ticks.get(len(match[0]), [])
        index = bisect_left(runs, match.end())
        if index == len(runs) or self._next("blank", match.end()) < runs[index]:
            return match.end()
        return runs[index] + len(match[0])

    def _is_maths(self, start: int, body: str, after: int) -> bool:
        """Whether `$body$` is maths and not two prices or two shell variables."""
        before = self._text[start - 1 : start]
        following = self._text[after : after + 1]
        if body[0].isspace() or body[-1].isspace() or "`" in body:
            return False
        if before.isalnum() or following.isdigit():
            return False
        return looks_like_maths(body, strictly=following.isalpha() or following == "_")


_COMMAND = re.compile(r"\\(?:text|mathrm|operatorname)\{[^{}]*\}|\\[A-Za-z]+")
_WORD = re.compile(r"[A-Za-z]{2,}")
_NUMBER = re.compile(r"[-+−]?\d+(?:[.,]\d+)*(?:\\?%)?")
_SIMPLE = re.compile(r"[-+−*/=<>()\[\]|!,.:;'^_{}\\\w\s≤≥≠×÷·±∈→√π∞°²³]+")


def looks_like_maths(body: str, *, strictly: bool = False) -> bool:
    """Whether what stands between two single dollars is a formula.

    Args:
        strictly: a letter follows, as in `$n$th`, but also as in `$HOME/$USER`.
    """
    if "\\" in body:
        return True
    words = _WORD.findall(_COMMAND.sub(" ", body))
    if strictly:
        return not words and bool(_SIMPLE.fullmatch(body)) and body[-1] not in "/:"
    if any(c in body for c in "^_="):
        return all(len(word) < 4 for word in words)
    if _NUMBER.fullmatch(body):
        return True
    if " " in body and words:
        return False
    return bool(_SIMPLE.fullmatch(body)) and all(len(w) < 3 or w.isupper() for w in words)
