"""Scoring one solution, or a file of them."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import msgspec

from app import output
from app.errors import CommandError
from app.exit_codes import ExitCode
from app.interrupts import interrupts
from app.outcome import code_for, told
from app.printable import one_line, printable
from app.solutions import Row, Solution, read_done, read_solutions
from engine.client import LocalEngine
from engine.protocol import Phase, RunFailed, RunFinished, ScoreRequest, StepScored, Stop, Trouble

_WIDTH = 100
"""Columns where the output is no terminal."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What is the same for all solutions of a call."""

    verifier: str
    prm_format: str | None
    context: int | None


@dataclass(frozen=True, slots=True)
class _Scored:
    """How one solution came out: scores, or a failure, or neither where it was stopped."""

    scores: tuple[float, ...] | None = None
    failed: RunFailed | None = None


def score_one(
    problem: str, steps: tuple[str, ...], settings: Settings, *, as_json: bool
) -> ExitCode:
    """Print a score for each step.

    Raises:
        CommandError: it cannot be scored.
    """
    scorer = _Scorer(settings)

    async def run() -> _Scored:
        with interrupts(scorer.stop):
            async with scorer.engine:
                return await scorer.score(problem, steps)

    found = asyncio.run(run())
    if found.failed is not None:
        raise CommandError(code_for(found.failed), told(found.failed))
    if found.scores is None:
        output.narrate("Stopped.")
        return ExitCode.STOPPED
    pairs = list(zip(steps, found.scores, strict=True))
    if as_json:
        rows = [{"text": step, "score": score} for step, score in pairs]
        whole = {"problem": problem, "verifier": settings.verifier, "steps": rows}
        output.data(msgspec.json.encode(whole) + b"\n")
    else:
        output.data("".join(line + "\n" for line in _table(pairs)))
    return ExitCode.OK


def score_file(path: Path, out: Path | None, settings: Settings) -> ExitCode:
    """Score what is not scored yet, a line of JSON each; wrong lines are named and passed over.

    Raises:
        CommandError: a file cannot be used, or the verifier cannot.
    """
    solutions, wrong = read_solutions(path)
    done = read_done(out) if out else set()
    todo = [solution for solution in solutions if solution.id not in done]
    for mistake in wrong:
        output.narrate(f"{one_line(str(path))}, {mistake}: passed over")
    if skipped := len(solutions) - len(todo):
        output.narrate(f"{skipped} of {len(solutions)} solutions are scored already")
    if out is None:
        code = asyncio.run(_File(settings, None).run(todo))
    else:
        with _opened(out) as file:
            code = asyncio.run(_File(settings, file).run(todo))
    if code is ExitCode.STOPPED:
        output.narrate("To go on, run the same command again." if out else "Stopped.")
    return code or (ExitCode.USAGE if wrong else ExitCode.OK)


def _opened(out: Path) -> BinaryIO:
    try:
        file = out.open("a+b", buffering=0)
        if file.tell():
            file.seek(-1, 2)
            if file.read() != b"\n":  # a line torn by a power cut stays by itself
                file.write(b"\n")
    except OSError as error:
        raise CommandError(
            ExitCode.STORAGE, f"{out} cannot be written ({error.strerror}). Check the path."
        ) from error
    return file


def _table(pairs: Sequence[tuple[str, float]]) -> list[str]:
    """Number, score and first words of each step."""
    width = shutil.get_terminal_size().columns if output.is_screen(sys.stdout) else _WIDTH
    digits = len(str(len(pairs)))
    lines: list[str] = []
    for number, (step, score) in enumerate(pairs, 1):
        words = one_line(step)
        room = max(20, width - digits - 10)
        lines.append(f"{number:>{digits}}  {score:.3f}  {_cut(words, room)}")
    return [printable(line) for line in lines]


def _cut(words: str, room: int) -> str:
    return words if len(words) <= room else words[: room - 1].rstrip() + "…"


class _Scorer:
    """Scores with one engine, which says what it loads."""

    def __init__(self, settings: Settings) -> None:
        self.engine = LocalEngine()
        self.stopping = False
        self._settings = settings
        self._named = ""

    def stop(self) -> None:
        self.stopping = True
        output.narrate("Stopping. Ctrl-C again leaves at once.")
        self.engine.cancel()

    async def score(self, problem: str, steps: tuple[str, ...]) -> _Scored:
        settings = self._settings
        request = ScoreRequest(
            problem=problem,
            steps=steps,
            verifier=settings.verifier,
            prm_format=settings.prm_format,
            context=settings.context,
        )
        scores: tuple[float, ...] | None = None
        async with aclosing(self.engine.score(request)) as events:
            async for event in events:
                match event:
                    case Phase(model=model, note=note) if model != self._named:
                        self._named = model
                        output.narrate(one_line(f"loading {model}{note and f' ({note})'}"))
                    case StepScored():
                        scores = event.scores
                    case RunFailed():
                        return _Scored(failed=event)
                    case RunFinished(stop=Stop.COMPLETE):
                        return _Scored(scores)
        return _Scored()


class _File:
    """The solutions of one call, one after another."""

    def __init__(self, settings: Settings, file: BinaryIO | None) -> None:
        self._scorer = _Scorer(settings)
        self._file = file

    async def run(self, todo: Sequence[Solution]) -> ExitCode:
        """Score them, up to where the user or a failure they all share stops it."""
        with interrupts(self._scorer.stop):
            async with self._scorer.engine:
                return await self._score_all(todo)

    async def _score_all(self, todo: Sequence[Solution]) -> ExitCode:
        code = ExitCode.OK
        for count, solution in enumerate(todo, 1):
            found = await self._scorer.score(solution.problem, solution.steps)
            failed = found.failed
            if failed is not None and failed.trouble is not Trouble.USAGE:
                raise CommandError(code_for(failed), told(failed))
            if failed is not None:
                code = ExitCode.USAGE
                self._write(Row(id=solution.id, error=told(failed)))
            elif found.scores is not None:
                self._write(Row(solution.id, solution.steps, found.scores))
            else:
                return ExitCode.STOPPED
            self._tell(count, len(todo), solution, found)
        return code

    def _write(self, row: Row) -> None:
        line = msgspec.json.encode(row) + b"\n"
        if self._file is None:
            output.data(line)
            return
        try:
            self._file.write(line)
        except OSError as error:
            raise CommandError(
                ExitCode.STORAGE,
                f"The scores could not be written ({error.strerror}). What is written stays.",
            ) from error

    def _tell(self, count: int, total: int, solution: Solution, found: _Scored) -> None:
        if self._file is None and sys.stdout.isatty():
            return
        if found.failed is not None:
            what = f"failed: {told(found.failed)}"
        else:
            what = f"lowest {min(found.scores or (0.0,)):.3f}"
        output.narrate(one_line(f"{count}/{total} {solution.id}: {what}"))
