"""Solve one problem."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec

from app import output
from app.display import Display, print_answer, renderer_for
from app.errors import ReaderGoneError
from app.exit_codes import ExitCode
from app.follow import follow
from app.interrupts import interrupts
from app.logs import how_to_go_on, log_folder, new_log, request_in
from app.outcome import exit_code
from app.run_view import RunView
from engine.client import LocalEngine
from engine.protocol import SolveRequest


def solve_one(request: SolveRequest, trace: Path | None, display: Display) -> ExitCode:
    """Run the request, logged where the user says or else where all runs are.

    Raises:
        CommandError: there is no result.
    """
    log = str(trace) if trace else new_log(log_folder())
    return _solve(msgspec.structs.replace(request, log=log), display, log_asked=trace is not None)


def resume_run(log: Path, time_limit: float | None, display: Display) -> ExitCode:
    """Go on with the run of a log; it may be given a new time limit.

    Raises:
        CommandError: there is no result, or it is not the log of a run.
    """
    request = msgspec.structs.replace(
        request_in(log), log=str(log), resume=True, time_limit=time_limit
    )
    return _solve(request, display, log_asked=True)


def _solve(request: SolveRequest, display: Display, *, log_asked: bool) -> ExitCode:
    view = RunView()
    try:
        asyncio.run(_run(request, view, display))
        if display is not Display.JSON:
            print_answer(view)
        code = exit_code(view, log_asked=log_asked)
        if display is Display.QUIET:  # what is lost is told all the same
            for warned in view.warnings:
                if warned.code == "log":
                    output.narrate(f"sapwood: {warned.message}")
    except ReaderGoneError:
        raise
    except BaseException:
        if view.nodes:
            _point_to_log(request)
        raise
    if code is ExitCode.STOPPED and view.run:
        _point_to_log(request)
    return code


def _point_to_log(request: SolveRequest) -> None:
    """Say how to go on with a run whose log holds something."""
    if request.log is not None:
        output.narrate(how_to_go_on(request.log))


async def _run(request: SolveRequest, view: RunView, display: Display) -> None:
    renderer = renderer_for(display, view)
    engine = LocalEngine()

    def stop() -> None:
        renderer.say("Stopping; the best answer so far follows. Ctrl-C again leaves at once.")
        engine.cancel()

    with interrupts(stop):
        async with engine:
            await follow(engine.solve(request), view, renderer)
