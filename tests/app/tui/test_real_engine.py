"""The app on the engine itself, with the models that come with it."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import msgspec
import psutil
import pytest

from app.run_view import NOT_NEEDED, Lineage, State
from app.store import view_of
from app.tui.effort import Effort
from app.tui.settings import Settings
from app.tui.turn import Standing, Turn
from engine.client import LocalEngine
from engine.protocol import Search, SolveRequest
from tests.app.tui.driving import Driver, running

pytestmark = pytest.mark.asyncio

STORY = (
    "Tom has 14 apples. He finds 5 more. Then he gives 3 to his sister. "
    "How many apples does Tom have now?"
)


def workers() -> list[psutil.Process]:
    """The engine's processes of this program, which may have others of its libraries' own."""
    return [child for child in psutil.Process().children() if _is_worker(child)]


def _is_worker(child: psutil.Process) -> bool:
    try:
        return "engine.service" in child.cmdline()
    except psutil.Error:  # it has ended
        return False


async def started(driver: Driver, effort_presses: int = 0) -> None:
    """Ask for something and wait until it is being searched for."""
    await driver.press(*["shift+tab"] * effort_presses)
    turn = await driver.ask(STORY)
    await driver.until(lambda: turn.view.nodes, limit=120)


async def test_the_first_start_leads_to_a_solved_problem_with_one_key() -> None:
    async with running(LocalEngine(), settings=Settings()) as driver:
        await driver.until_shown("Enter solves it.")
        await driver.press("enter")
        await driver.until(lambda: driver.transcript.turns)
        turn = driver.turn
        await driver.until(lambda: turn.view.ended, limit=120)
        assert turn.standing is Standing.DONE
        await driver.until_shown("a demonstration model for simple arithmetic stories")
        await driver.until_shown("   score 0.")
        await driver.until_shown("★")
        assert driver.rows()


async def test_quick_gives_one_path_and_the_worker_stays_for_the_next() -> None:
    async with running(LocalEngine(), settings=Settings(welcomed=True, effort="quick")) as driver:
        await driver.solve(STORY)
        before = [worker.pid for worker in workers()]
        turn = await driver.solve(STORY)
        assert turn.standing is Standing.DONE
        assert [worker.pid for worker in workers()] == before
        assert len(driver.rows()) == len(turn.view.nodes)
    assert workers() == []


async def test_esc_keeps_the_partial_and_the_run_goes_on_from_it_later() -> None:
    async with running(LocalEngine()) as driver:
        await started(driver, 1)
        await driver.press("escape")
        assert driver.turn.standing is Standing.STOPPED
        await driver.until(lambda: driver.turn.view.ended)
        assert driver.turn.view.nodes
        assert driver.turn.resumable
        driver.transcript.focus()
        await driver.press("g")
        await driver.until(lambda: driver.turn.standing is Standing.DONE, limit=120)
        assert driver.turn.view.answered is not None


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
async def test_a_worker_killed_in_mid_answer_is_told_of_and_the_run_ends_all_the_same() -> None:
    async with running(LocalEngine()) as driver:
        await started(driver, 1)
        turn = driver.turn
        (worker,) = workers()
        os.kill(worker.pid, signal.SIGKILL)
        await driver.press("x")
        assert driver.app.chat.query_one("#composer").text == "x"  # type: ignore[attr-defined]
        await driver.until_shown("The engine was lost")
        await driver.until(lambda: turn.view.ended, limit=120)
        assert turn.standing is Standing.DONE
        await driver.until_shown("it was started again and the run went on")


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
async def test_a_run_whose_engine_dies_twice_is_gone_on_with_by_a_key_and_has_the_same_tree(
    tmp_path: Path,
) -> None:
    request = SolveRequest(problem=STORY, verifier="seedling", search=Search(n=128, width=4))
    logs = [str(tmp_path / name) for name in ("whole.jsonl", "broken.jsonl")]
    async with LocalEngine() as engine:
        async for _ in engine.solve(msgspec.structs.replace(request, log=logs[0])):
            pass
    async with running(LocalEngine()) as driver:
        turn = Turn(msgspec.structs.replace(request, log=logs[1]), Effort.DEEP)
        await driver.app.chat.begin(turn, None)
        for _ in range(2):
            await driver.until(lambda: workers() and is_written(turn), limit=120)
            (worker,) = workers()
            os.kill(worker.pid, signal.SIGKILL)
            # A step that was being written is one no more once the loss is known.
            await driver.until(lambda: not is_written(turn), limit=120)
        await driver.until(lambda: turn.standing is Standing.FAILED, limit=120)
        await driver.until_shown("g goes on from here")
        driver.transcript.focus()
        await driver.press("g")
        await driver.until(lambda: turn.standing is Standing.DONE, limit=120)
    assert decided(logs[0]) == decided(logs[1])


def is_written(turn: Turn) -> bool:
    """Whether the engine is at work on a step."""
    return any(node.stage is State.WRITING for node in turn.view.nodes.values())


def decided(log: str) -> dict[Lineage, tuple[str, State]]:
    """The tree of a run, but for steps that were begun early and for nothing, as timing has it."""
    view = view_of(Path(log))
    assert view is not None
    nodes = view.nodes.items()
    return {name: (n.text, n.state) for name, n in nodes if n.reason != NOT_NEEDED}
