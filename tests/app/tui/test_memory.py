"""What is gone from the screen goes from memory."""

from __future__ import annotations

import gc
from weakref import ref

import pytest
from textual.widget import Widget

from app.tui.widgets.turn_block import TurnBlock
from tests.app.tui.driving import Driver, running

pytestmark = pytest.mark.asyncio


async def test_an_old_conversation_is_released_with_its_run_and_its_drawings() -> None:
    async with running() as driver:
        held = await _solved(driver)
        assert all(held_by() is not None for held_by in held)
        await driver.press("ctrl+n")
        await driver.until(lambda: not driver.transcript.turns)
        await _solved(driver)

        def released() -> bool:
            gc.collect()
            return all(held_by() is None for held_by in held)

        await driver.until(released, limit=10)


async def test_a_reopened_conversation_is_released_as_well() -> None:
    async with running() as driver:
        await _solved(driver)
        for _ in range(2):
            await driver.press("ctrl+n")
            await driver.until(lambda: not driver.transcript.turns)
            await driver.press("ctrl+o")
            await driver.until_shown("How many?")
            await driver.press("enter")
            await driver.until(lambda: driver.transcript.selected is not None)
            await driver.until_shown("answer 8")
        gc.collect()
        kept = [entry for entry in gc.get_objects() if type(entry).__name__ == "Turn"]
        assert kept == [driver.turn]


async def _solved(driver: Driver) -> list[ref[object]]:
    """Have a question solved; gives what its conversation holds."""
    turn = await driver.solve()
    await driver.until_shown("answer 8   score 0.95")
    block = driver.transcript.query(TurnBlock).first()  # `query_one` remembers what it found
    drawings = [ref[object](widget._styles_cache) for widget in block.query(Widget)]
    return [ref(turn), ref(turn.feed), ref(block), *drawings]
