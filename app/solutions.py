"""Reading a file of solutions, one JSON object a line, and what is written of each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import msgspec

from app.errors import CommandError
from app.exit_codes import ExitCode
from app.json_lines import read_json_lines
from engine.protocol import split_steps


@dataclass(frozen=True, slots=True)
class Solution:
    """One solution to be scored."""

    id: str | int
    """As given, otherwise the number of its line."""
    problem: str
    steps: tuple[str, ...]


class ScoreRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What became of one solution."""

    command: ClassVar[str] = "sapwood score"

    id: str | int
    problem: str
    steps: tuple[str, ...]
    scores: tuple[float, ...]
    """One a step; none where it could not be scored."""
    error: str | None
    """Why there are no scores; such a solution is tried again next time."""
    verifier: str
    """Catalogue id or path, as it was given."""
    prm_format: str | None
    """What `--prm-format` said."""

    @property
    def settings(self) -> dict[str, str | None]:
        """What the scores depend on. Not --context: with too short a one there are none."""
        return {"verifier": self.verifier, "prm_format": self.prm_format}

    def difference(self, solution: Solution) -> str:
        """What the solution of the same id has otherwise; empty where it is the same."""
        if self.problem != solution.problem:
            return "problem"
        return "" if self.steps == solution.steps else "solution"


class _Line(msgspec.Struct):
    problem: str | None = None
    question: str | None = None
    solution: str | None = None
    steps: list[str] | None = None
    id: str | int | None = None


def read_solutions(path: Path) -> tuple[list[Solution], list[str]]:
    """The solutions of a file, and what is wrong with each of the other lines.

    Raises:
        CommandError: it cannot be read, or is empty.
    """
    solutions, wrong = read_json_lines(path, _solution)
    if not solutions and not wrong:
        raise CommandError(ExitCode.USAGE, f"{path} has no solutions in it.")
    return solutions, wrong


def _solution(line: bytes, number: int) -> Solution:
    item = msgspec.json.decode(line, type=_Line)
    problem = item.problem if item.problem is not None else item.question
    if problem is None or not problem.strip():
        raise ValueError("no problem in it")
    if item.steps is not None:
        steps = tuple(step.strip() for step in item.steps)
    else:
        steps = split_steps(item.solution or "")
    if not steps or not all(steps):
        raise ValueError("no solution in it, or an empty step")
    return Solution(number if item.id is None else item.id, problem.strip(), steps)
