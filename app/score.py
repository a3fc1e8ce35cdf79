"""Scoring one solution, or a file of them."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

import msgspec

from app import output
from app.errors import CommandError
from app.exit_codes import ExitCode
from app.interrupts import interrupts
from app.outcome import code_for, told
from app.printable import one_line, printable
from app.result_file import ResultFile, Results, StandardOutput
from app.solutions import ScoreRow, Solution, read_solutions
from engine.client import LocalEngine
from engine.protocol import (
    Phase,
    RunFailed,
    RunFinished,
    ScoreRequest,
    StepScored,
    Stop,
    Trouble,
    Warned,
)

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
    loaded: bool = True
    """Whether it came as far as the verifier's being loaded."""

    @property
    def hopeless(self) -> bool:
        """Whether the cause is not the solution but the verifier, or an option, which all share."""
        return self.failed is not None and (
            self.failed.trouble is not Trouble.USAGE or not self.loaded
        )


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
    results: Results[ScoreRow] = StandardOutput()
    if out:
        wanted = {"verifier": settings.verifier, "prm_format": settings.prm_format}
        results = ResultFile(out, ScoreRow, solutions, wanted, default={})
    todo = [solution for solution in solutions if solution.id not in results.done]
    for mistake in wrong:
        output.narrate(f"{one_line(str(path))}, {mistake}: passed over")
    if skipped := len(solutions) - len(todo):
        output.narrate(f"{skipped} of {len(solutions)} solutions are scored already")
    code = asyncio.run(_File(settings, results, told=out is not None).run(todo))
    if code is ExitCode.STOPPED:
        output.narrate("To go on, run the same command again." if out else "Stopped.")
    return code or (ExitCode.USAGE if wrong else ExitCode.OK)


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
        self._settings = settings
        self._named = ""
        self._warned: set[str] = set()

    def stop(self) -> None:
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
        loaded = False
        async with aclosing(self.engine.score(request)) as events:
            async for event in events:
                loaded = loaded or isinstance(event, Phase)
                match event:
                    case Phase(model=model, note=note) if model != self._named:
                        self._named = model
                        output.narrate(one_line(f"loading {model}{note and f' ({note})'}"))
                    case Warned(message=message) if message not in self._warned:
                        self._warned.add(message)
                        output.narrate(one_line(f"warning: {message}"))
                    case StepScored():
                        scores = event.scores
                    case RunFailed():
                        return _Scored(failed=event, loaded=loaded)
                    case RunFinished(stop=Stop.COMPLETE):
                        return _Scored(scores)
        return _Scored()


class _File:
    """The solutions of one call, one after another.

    Args:
        told: whether it is told how each came out, though that goes to a terminal itself.
    """

    def __init__(self, settings: Settings, results: Results[ScoreRow], *, told: bool) -> None:
        self._scorer = _Scorer(settings)
        self._settings = settings
        self._results = results
        self._told = told or not sys.stdout.isatty()

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
            if failed is not None and found.hopeless:
                raise CommandError(code_for(failed), told(failed))
            if failed is None and found.scores is None:
                return ExitCode.STOPPED
            if failed is not None:
                code = ExitCode.USAGE
            self._results.append(self._row(solution, found))
            if self._told:
                _tell(count, len(todo), solution, found)
        return code

    def _row(self, solution: Solution, found: _Scored) -> ScoreRow:
        return ScoreRow(
            id=solution.id,
            problem=solution.problem,
            steps=solution.steps,
            scores=found.scores or (),
            error=told(found.failed) if found.failed else None,
            verifier=self._settings.verifier,
            prm_format=self._settings.prm_format,
        )


def _tell(count: int, total: int, solution: Solution, found: _Scored) -> None:
    if found.failed is not None:
        what = f"failed: {told(found.failed)}"
    else:
        what = f"lowest {min(found.scores or (0.0,)):.3f}"
    output.narrate(one_line(f"{count}/{total} {solution.id}: {what}"))
