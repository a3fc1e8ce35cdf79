"""Reading a file of solutions, one JSON object a line, and what was scored of it before."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from app.json_lines import read_json_lines
from engine.protocol import split_steps


@dataclass(frozen=True, slots=True)
class Solution:
    """One solution to be scored."""

    id: str | int
    """As given, otherwise the number of its line."""
    problem: str
    steps: tuple[str, ...]


class Row(msgspec.Struct, omit_defaults=True):
    """What is written of one solution."""

    id: str | int
    steps: tuple[str, ...] = ()
    scores: tuple[float, ...] = ()
    error: str | None = None


class _Line(msgspec.Struct):
    problem: str | None = None
    question: str | None = None
    solution: str | None = None
    steps: list[str] | None = None
    id: str | int | None = None


def read_solutions(path: Path) -> tuple[list[Solution], list[str]]:
    """The solutions of a file, and what is wrong with each of the other lines.

    Raises:
        CommandError: it cannot be read.
    """
    return read_json_lines(path, _solution)


def read_done(out: Path) -> set[str | int]:
    """Ids of the solutions that a file has scores of."""
    try:
        lines = out.read_bytes().splitlines()
    except OSError:
        return set()
    done: set[str | int] = set()
    for line in lines:
        try:
            row = msgspec.json.decode(line, type=Row)
        except msgspec.DecodeError:
            continue  # torn by a power cut
        if row.error is None:
            done.add(row.id)
    return done


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
