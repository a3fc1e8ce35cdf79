"""Every screen as people see it at three sizes, and its colours in the dark and the light theme.

A tour of all screens takes seconds, so there is one for each size, and that of the middle one sees
the colours of the dark theme as well.

The run on them is one of the seedling that was recorded. `SAPWOOD_UPDATE_SCREENS=1` writes the
screens anew, `python -m tests.app.tui.record` the run.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from time import monotonic

import pytest

from app.tui.choices import Choice, Offer
from app.tui.costs import Cost
from app.tui.effort import Models
from app.tui.settings import Settings
from engine.protocol import Trouble
from tests.app.streams import failing_run, whole_run
from tests.app.tui.driving import WIDE, Driver, ToldEngine, running
from tests.app.tui.pictures import as_styles, as_text
from tests.app.tui.record import PROBLEM, recorded

pytestmark = pytest.mark.asyncio

_FOLDER = Path(__file__).parent / "screens"
_SIZES = [(80, 24), (120, 40), (200, 60)]
_MOMENT = 0.12
"""Seconds, more than the chat's clock takes from one look at its turns to the next."""
_LATE = 20.0
"""Seconds after which a screen is not as it was."""
See = Callable[[str], None]


def compare(name: str, seen: str) -> None:
    """What is seen against what is kept."""
    path = _FOLDER / f"{name}.txt"
    if os.environ.get("SAPWOOD_UPDATE_SCREENS") == "1":
        path.parent.mkdir(exist_ok=True)
        path.write_text(seen, "utf-8")
    assert seen == path.read_text("utf-8")


@pytest.fixture(autouse=True)
def same_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """What differs from machine to machine and from day to day."""
    cost = Cost(bytes=1 << 29, least=4.0)
    pair = Models("a-generator", "a-verifier", n=16)
    pairs = (Choice("seedling", Models(), ()), Choice("gpu-12: a pair", pair, (), True, 1 << 33))
    offer = Offer("A machine, 12.0 GiB of 16.0 GiB free", 12 << 30, pairs, (), ())
    monkeypatch.setattr("app.tui.screens.models.look", lambda now: offer)
    monkeypatch.setattr("app.tui.screens.models.planned", lambda models, effort: cost)
    monkeypatch.setattr("secrets.randbelow", lambda below: 7)
    monkeypatch.setattr("app.store.store._now", lambda: "2026-01-02T03:04:05.000000+00:00")


@pytest.mark.parametrize("size", _SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_every_screen_is_as_it_was(size: tuple[int, int]) -> None:
    name = f"{size[0]}x{size[1]}"
    async with running(engine(), size=size, settings=Settings(theme="sapwood-dark")) as driver:

        def see(screen: str) -> None:
            compare(f"{screen}-{name}", as_text(driver.app))
            if size == WIDE:
                compare(f"{screen}-dark", as_styles(driver.app))

        await tour(driver, see)


async def test_every_screen_has_its_colours_in_the_light_theme() -> None:
    async with running(engine(), size=WIDE, settings=Settings(theme="sapwood-light")) as driver:
        await tour(driver, lambda screen: compare(f"{screen}-light", as_styles(driver.app)))


def engine() -> ToldEngine:
    return ToldEngine(recorded(), failing_run(Trouble.MEMORY))


async def tour(driver: Driver, see: See) -> None:
    """Go through all screens."""
    await driver.until_shown("Enter solves it.")
    await settled(driver, see, "welcome")
    await driver.press("escape")
    await driver.until(lambda: driver.app.screen is driver.app.chat)
    await driver.solve(PROBLEM)
    await driver.until_shown("done in")
    await driver.until_shown("8 paths · ≈")
    await driver.until(lambda: driver.tree.node is driver.turn.view.leader)
    await settled(driver, see, "solved")
    await driver.press("ctrl+t")
    await driver.until(lambda: driver.tree.has_focus)
    await settled(driver, see, "tree")
    await driver.press("c", "home", "c")
    await driver.until_shown("in common")
    driver.app.clear_notifications()
    await settled(driver, see, "compare")
    await driver.press("escape", "t")
    await driver.until_shown("round 1:")
    await settled(driver, see, "timeline")
    await driver.press("t", "comma")
    await driver.until_shown("replay")
    await settled(driver, see, "replay")
    await driver.press("escape", "escape")
    for key, words, name in (
        ("f1", "Sapwood answers by", "help"),
        ("ctrl+o", "Search all conversations", "sessions"),
        ("f2", "Attach a text file", "attach"),
        ("f3", "Export the conversation", "export"),
        ("f4", "fits: ", "models"),
    ):
        await driver.press(key)
        await driver.until_shown(words)
        await settled(driver, see, name)
        await driver.press("escape")
        await driver.until(lambda: driver.app.screen is driver.app.chat)
    driver.transcript.focus()
    await driver.press("R")
    await driver.until_shown("Ask again")
    await settled(driver, see, "retry")
    await driver.press("escape")
    await driver.until(lambda: driver.app.screen is driver.app.chat)
    await driver.solve("One that is too large")
    await driver.until_shown("A runs it anyway")
    await settled(driver, see, "refused")
    driver.transcript.focus()
    await driver.press("A")
    await driver.until_shown("Run it anyway?")
    await settled(driver, see, "confirm")


async def settled(driver: Driver, see: See, name: str) -> None:
    """Look at a screen once nothing on it changes any more, which takes a busy machine a while."""
    for field in driver.app.screen.query("Input, TextArea"):
        field.cursor_blink = False  # type: ignore[attr-defined]
    end = monotonic() + _LATE
    while True:
        before = ""
        while before != (now := as_styles(driver.app)):
            before = now
            await driver.pilot.pause(_MOMENT)
        try:
            return see(name)
        except AssertionError:
            if monotonic() > end:
                raise


async def test_a_search_in_its_second_round() -> None:
    async with running(ToldEngine(whole_run(), hold=27)) as driver:
        turn = await driver.ask()
        await driver.until(lambda: (0, 0) in turn.view.nodes)
        await driver.until_shown("✕ +2 pruned")
        lines = driver.screen().splitlines()
        assert any("◐" in line or "◉" in line for line in lines)
        assert any("best 0.90" in line and "4 beams" in line for line in lines)
