"""Reading a file of problems: one JSON object a line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from app.errors import CommandError
from app.exit_codes import ExitCode
from app.printable import one_line

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
    try:
        lines = path.read_bytes().removeprefix(b"\xef\xbb\xbf").splitlines()
    except OSError as error:
        raise CommandError(
            ExitCode.USAGE, f"{path} cannot be read ({error.strerror}). Check the path."
        ) from error
    problems: dict[str | int, Problem] = {}
    wrong: list[str] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            problem = _problem(line, number)
            if problem.id in problems:
                raise ValueError(f"the id {problem.id!r} was there before")
            problems[problem.id] = problem
        except ValueError as error:  # msgspec's errors are ValueErrors too
            wrong.append(f"line {number}: {one_line(str(error))}")
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
    return list(problems.values())


def _problem(line: bytes, number: int) -> Problem:
    item = msgspec.json.decode(line, type=_Line)
    text = item.problem if item.problem is not None else item.question
    if text is None or not text.strip():
        raise ValueError("no problem in it")
    expected = None if item.answer is None else str(item.answer)
    return Problem(number if item.id is None else item.id, text, expected)
