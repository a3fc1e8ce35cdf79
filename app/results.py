"""What is written of each problem of a file."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from app.problems import Problem


class Result(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What became of one problem."""

    command: ClassVar[str] = "sapwood solve"

    id: str | int
    problem: str
    answer: str | None = None
    correct: bool | None = None
    """None where no answer was expected."""
    score: float | None = None
    seconds: float
    """Required, so that a line of a file of problems is no result."""
    tokens: int = 0
    stop: str | None = None
    error: str | None = None
    """Why there is no result; such a problem is tried again next time."""
    settings: dict[str, Any] | None = None
    """What was asked for otherwise than by default; None in files of older versions."""

    def difference(self, problem: Problem) -> str:
        """What the problem of the same id has otherwise; empty where it is the same."""
        return "" if self.problem == problem.text else "problem"
