"""Solve a file of problems with one engine."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from app import output
from app.accuracy import accuracy_line
from app.exit_codes import ExitCode
from app.follow import follow
from app.interrupts import interrupts
from app.logs import log_folder, new_log
from app.outcome import code_for, told_with_force
from app.printable import one_line
from app.problems import Problem, read_problems
from app.progress import Progress, progress_for
from app.render import Quiet
from app.result_file import ResultFile, Results, StandardOutput
from app.results import Result
from app.run_view import RunView
from engine.client import LocalEngine
from engine.protocol import Drafting, RunFailed, SolveRequest, Stop, Trouble, Warned

_FREE_TO_CHANGE = {"problem", "expected", "budget", "force", "log", "resume", "time_limit"}


def solve_file(
    template: SolveRequest, problems_path: Path, out: Path | None, *, at_once: int, quiet: bool
) -> ExitCode:
    """Solve what is not solved yet and print how many answers are correct.

    Args:
        template: the request but for the problem.
        out: the file of results; None writes them to standard output.
        at_once: problems solved side by side.

    Raises:
        CommandError: a file cannot be used.
    """
    problems = read_problems(problems_path)
    results: Results[Result] = StandardOutput()
    if out:
        settings = settings_of(template)
        results = ResultFile(out, Result, problems, settings, default=_DEFAULT)
    todo = [problem for problem in problems if problem.id not in results.done]
    if (skipped := len(problems) - len(todo)) and not quiet:
        output.narrate(f"{skipped} of {len(problems)} problems are done already")
    progress = progress_for(
        len(todo), quiet=quiet, results_shown=out is None and sys.stdout.isatty()
    )
    try:
        code = asyncio.run(_Batch(template, results, progress, at_once).run(todo))
    finally:
        progress.close()
    _summarise(problems, results, to_stdout=out is not None)
    if code is ExitCode.STOPPED:
        output.narrate("To go on, run the same command again." if out else "Stopped.")
    late = sum(result.stop == Stop.TIME for result in results.done.values())
    if late:
        output.narrate(
            f"{late} of {len(problems)} problems came to the time limit before their search was "
            "done; what stands for them is the best until then."
        )
    return ExitCode.STOPPED if late and code is ExitCode.OK else code


def _summarise(problems: Sequence[Problem], results: Results[Result], *, to_stdout: bool) -> None:
    done = (results.done.get(problem.id) for problem in problems)
    verdicts = [result.correct for result in done if result and result.correct is not None]
    if not verdicts:
        return
    line = accuracy_line(sum(verdicts), len(verdicts))
    if to_stdout:
        output.data(line + "\n")
    else:
        output.narrate(line)


def settings_of(request: SolveRequest) -> dict[str, Any]:
    """By the names of the options, what the request has otherwise than by default, but for what
    does not change what is found."""
    return {name: value for name, value in _flat(request).items() if value != _DEFAULT[name]}


def _flat(request: SolveRequest) -> dict[str, Any]:
    fields = msgspec.to_builtins(request)
    search, sampling = fields.pop("search"), fields.pop("sampling")
    drafting = fields.pop("drafting") or msgspec.to_builtins(_NO_DRAFTS) | {"draft": None}
    kept = {name: value for name, value in fields.items() if name not in _FREE_TO_CHANGE}
    return kept | drafting | search | sampling


_NO_DRAFTS = Drafting(draft="")
_DEFAULT = _flat(SolveRequest(problem=""))


class _Batch:
    """The problems of one call."""

    def __init__(
        self,
        template: SolveRequest,
        results: Results[Result],
        progress: Progress,
        at_once: int,
    ) -> None:
        self._template = template
        self._results = results
        self._progress = progress
        self._logs = log_folder()
        self._engine = LocalEngine()
        self._at_once = at_once
        self._stopping = False
        self._over = False
        """Whether no further problem is begun."""
        self._code = ExitCode.OK
        self._before: RunFailed | None = None
        self._warned: set[str] = set()

    async def run(self, todo: Sequence[Problem]) -> ExitCode:
        """Solve the problems, up to where the user or a failure they all share stops it."""
        with interrupts(self._stop):
            async with self._engine:
                return await self._solve_all(todo)

    def _stop(self) -> None:
        self._stopping = True
        self._progress.say("Stopping; what is done is kept. Ctrl-C again leaves at once.")
        self._engine.cancel()

    async def _solve_all(self, todo: Sequence[Problem]) -> ExitCode:
        left = iter(todo)
        await asyncio.gather(*(self._solve_from(left) for _ in range(self._at_once)))
        return ExitCode.STOPPED if self._stopping else self._code

    async def _solve_from(self, left: Iterator[Problem]) -> None:
        """Solve one problem after another, as long as any are left."""
        for problem in left:
            if self._stopping or self._over:
                return
            view = await self._solve(problem)
            if view.finished is not None and view.finished.stop is Stop.CANCELLED:
                self._stopping = True
                return
            result = msgspec.structs.replace(
                _result(problem, view), settings=settings_of(self._template)
            )
            self._results.append(result)
            self._warn(view.warnings)
            self._progress.done(result)
            if view.failed is not None:
                self._code = self._code or code_for(view.failed)
                if not self._over and _hopeless(view.failed, self._before):
                    self._over = True
                    self._progress.say("Stopping: the other problems would fail the same way.")
            self._before = view.failed

    def _warn(self, warnings: Sequence[Warned]) -> None:
        """Tell what was not told of a problem before, if with other figures."""
        for warned in warnings:
            words = re.sub(r"\d+", "", warned.message)
            if words not in self._warned:
                self._warned.add(words)
                self._progress.say(one_line(f"warning: {warned.message}"))

    async def _solve(self, problem: Problem) -> RunView:
        request = msgspec.structs.replace(
            self._template,
            problem=problem.text,
            expected=problem.expected,
            log=new_log(self._logs),
        )
        view = RunView()
        await follow(self._engine.solve(request), view, Quiet())
        return view


def _hopeless(failed: RunFailed, before: RunFailed | None) -> bool:
    """Whether the cause is not the problem but the model, or an option, which all share."""
    if failed.trouble is Trouble.USAGE:
        return before is not None and before.message == failed.message
    return failed.trouble is Trouble.MODEL


def _result(problem: Problem, view: RunView) -> Result:
    answered, finished = view.answered, view.finished
    result = Result(id=problem.id, problem=problem.text, seconds=round(view.at, 3))
    if view.failed is not None:
        return msgspec.structs.replace(result, error=told_with_force(view.failed))
    if finished is None:
        return msgspec.structs.replace(result, error="The engine ended without a result.")
    result = msgspec.structs.replace(
        result, tokens=finished.counters.generated_tokens, stop=finished.stop.value
    )
    if answered is None or not answered.answer:
        # No answer is a wrong one.
        return msgspec.structs.replace(result, correct=None if problem.expected is None else False)
    return msgspec.structs.replace(
        result, answer=answered.answer, score=answered.score, correct=answered.correct
    )
