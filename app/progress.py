"""How far a file of problems is."""

from __future__ import annotations

import sys
from typing import Protocol

from app import output
from app.narration import clock
from app.printable import one_line
from app.render import Quiet
from app.results import Result


class Progress(Protocol):
    """Shows how far a batch is."""

    def done(self, result: Result) -> None:
        """One more problem is done."""
        ...

    def say(self, line: str) -> None: ...

    def close(self) -> None: ...


class NoProgress(Quiet):
    """Shows nothing."""

    def done(self, result: Result) -> None:
        pass


class Lines(Quiet):
    """One line a problem."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._count = 0

    def done(self, result: Result) -> None:
        self._count += 1
        self.say(f"{self._count}/{self._total} {result_line(result)}")


def progress_for(total: int, *, quiet: bool, results_shown: bool) -> Progress:
    """The one that suits the terminal.

    Args:
        results_shown: the results themselves go to the terminal, under which a bar cannot stay.
    """
    if quiet:
        return NoProgress()
    if results_shown or not output.is_screen(sys.stderr):
        return Lines(total)
    from app.bar import Bar
    from app.terminal import terminal

    return Bar(total, terminal())


def result_line(result: Result) -> str:
    """A result in short."""
    name = one_line(str(result.id))
    if result.error is not None:
        return f"{name}: failed: {one_line(result.error)}"
    verdict = {True: ", correct", False: ", wrong", None: ""}[result.correct]
    return f"{name}: {one_line(result.answer or 'no answer')}{verdict}, {clock(result.seconds)}"
