"""Reading a file of problems: one JSON object a line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from app.errors import CommandError
from app.exit_codes import ExitCode
from app.json_lines import read_json_lines

SHOWN = 5
"""How many wrong lines are named; the rest is counted."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem to solve."""

    id: str | int
    """As given, otherwise the number of its line."""
    text: str
    expected: str | None


class _Line(msgspec.Struct):
    problem: str | None = None
    question: str | None = None
    id: str | int | None = None
    answer: str | int | float | None = None


def read_problems(path: Path) -> list[Problem]:
    """All problems of a file.

    Raises:
        CommandError: it cannot be read, or some of its lines are wrong; all are checked first.
    """
    problems, wrong = read_json_lines(path, _problem)
    if wrong:
        shown = "; ".join(wrong[:SHOWN])
        more = f"; and {len(wrong) - SHOWN} more" if len(wrong) > SHOWN else ""
        raise CommandError(
            ExitCode.USAGE,
            f"{path} has lines that are not problems: {shown}{more}."
            ' Each line is a JSON object such as {"problem": "...", "answer": "..."}.',
        )
    if not problems:
        raise CommandError(ExitCode.USAGE, f"{path} has no problems in it.")
    return problems


def _problem(line: bytes, number: int) -> Problem:
    item = msgspec.json.decode(line, type=_Line)
    text = item.problem if item.problem is not None else item.question
    if text is None or not text.strip():
        raise ValueError("no problem in it")
    expected = None if item.answer is None else str(item.answer)
    return Problem(number if item.id is None else item.id, text, expected)
