"""LaTeX in tokens, taken one after another."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

NESTING = 32
"""How deep brackets, arguments and scripts may be in each other."""


class Unknown(Exception):  # noqa: N818 - not an error: the formula is shown as it is written
    """The formula has something in it that is not known to be shown right."""


@dataclass(frozen=True, slots=True)
class Token:
    text: str
    """A character, or a command with its backslash; empty after the last."""
    start: int
    end: int
    spaced: bool
    """White space stands before it."""

    @property
    def is_digit(self) -> bool:
        return self.text.isascii() and self.text.isdecimal()


_TOKEN = re.compile(r"(\s*)(\\(?:[A-Za-z]+|.)|.)", re.DOTALL)


class Reader:
    """A place in a source, which only moves on, and how deep it is."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._tokens = [
            Token(match[2], match.start(2), match.end(2), bool(match[1]))
            for match in _TOKEN.finditer(source.rstrip())
        ]
        self._end = Token("", len(source), len(source), True)
        self._place = 0
        self.depth = 0

    @property
    def next(self) -> Token:
        return self.ahead(0)

    def ahead(self, tokens: int) -> Token:
        """The token after so many others."""
        place = self._place + tokens
        return self._tokens[place] if place < len(self._tokens) else self._end

    def take(self) -> Token:
        token = self.next
        self._place += 1
        return token

    def skip(self, text: str) -> None:
        """Take this token if it is the next."""
        if self.next.text == text:
            self.take()

    def expect(self, text: str) -> Token:
        """Take this token.

        Raises:
            Unknown: it is another.
        """
        token = self.take()
        if token.text != text:
            raise Unknown
        return token

    def match(self, pattern: re.Pattern[str], start: int) -> str:
        """Take what matches from there on; nothing if that is nothing."""
        if not (match := pattern.match(self._source, start)):
            return ""
        while self.next.text and self.next.start < match.end():
            self._place += 1
        return match[0]

    @contextmanager
    def deeper(self) -> Iterator[None]:
        """Within the block it is one deeper.

        Raises:
            Unknown: that is too deep.
        """
        self.depth += 1
        self.check_depth()
        yield
        self.depth -= 1

    def check_depth(self) -> None:
        if self.depth > NESTING:
            raise Unknown
