"""What the screens look like, as text. `SAPWOOD_UPDATE_SCREENS=1` writes them anew."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from app.tui.settings import Settings
from tests.app.streams import whole_run
from tests.app.tui.driving import SMALL, WIDE, Driver, ToldEngine, running

pytestmark = pytest.mark.asyncio

_FOLDER = Path(__file__).parent / "screens"
_LARGE = (200, 60)


def compare(driver: Driver, name: str) -> None:
    """The screen against the one that is kept."""
    path = _FOLDER / f"{name}.txt"
    seen = driver.screen() + "\n"
    if os.environ.get("SAPWOOD_UPDATE_SCREENS") == "1":
        path.parent.mkdir(exist_ok=True)
        path.write_text(seen, "utf-8")
    assert seen == path.read_text("utf-8")


@pytest.mark.parametrize("size", [SMALL, WIDE, _LARGE], ids=lambda size: f"{size[0]}x{size[1]}")
async def test_a_solved_problem(size: tuple[int, int]) -> None:
    async with running(size=size) as driver:
        await driver.solve("Tom has 3 apples and finds 5. How many?")
        await driver.until_shown("done in 2.5 s")
        await driver.until_shown("about 2.5 s")
        await driver.until(lambda: driver.tree.node is driver.turn.view.leader)
        await driver.pilot.pause()
        compare(driver, f"solved-{size[0]}x{size[1]}")


async def test_the_tree_on_a_small_terminal() -> None:
    async with running(size=SMALL) as driver:
        await driver.solve()
        await driver.press("ctrl+t")
        await driver.until_shown("+2 pruned")
        await driver.until_shown("about 2.5 s")
        await driver.until(lambda: driver.tree.node is driver.turn.view.leader)
        await driver.pilot.pause()
        compare(driver, "tree-80x24")


async def test_a_search_in_its_second_round() -> None:
    async with running(ToldEngine(whole_run(), hold=27)) as driver:
        turn = await driver.ask()
        await driver.until(lambda: (0, 0) in turn.view.nodes)
        await driver.until_shown("✕ +2 pruned")
        lines = driver.screen().splitlines()
        assert any("◐" in line or "◉" in line for line in lines)
        assert any("best 0.90" in line and "4 beams" in line for line in lines)


async def test_the_first_run_screen() -> None:
    async with running(settings=Settings(), size=SMALL) as driver:
        await driver.until_shown("Enter solves it.")
        await driver.until_shown("Chat  Reasoning")
        compare(driver, "welcome-80x24")
