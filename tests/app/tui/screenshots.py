"""Draws the pictures of the README from the recorded run: `python -m tests.app.tui.screenshots`."""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path
from unittest.mock import patch

from app.tui.settings import Settings
from tests.app.tui.driving import Driver, ToldEngine, running
from tests.app.tui.record import PROBLEM, recorded

_FOLDER = Path(__file__).parents[3] / "docs" / "screens"
_SIZE = (118, 32)


async def draw() -> None:
    for theme in ("dark", "light"):
        settings = Settings(welcomed=True, theme=f"sapwood-{theme}")
        async with running(ToldEngine(recorded()), size=_SIZE, settings=settings) as driver:
            await driver.solve(PROBLEM)
            await driver.until_shown("done in")
            await driver.press("ctrl+t", "b")
            await keep(driver, f"tree-{theme}")
            await driver.press("c", "p", "up", "up", "c")
            await driver.until_shown("in common")
            await keep(driver, f"compare-{theme}")
            await driver.press("escape")
            driver.transcript.focus()
            await driver.press("R")
            await driver.until_shown("Ask again")
            await keep(driver, f"retry-{theme}")


async def keep(driver: Driver, name: str) -> None:
    """Write the screen as it is once it has settled."""
    driver.app.clear_notifications()
    await driver.pilot.pause(1.0)
    _FOLDER.mkdir(parents=True, exist_ok=True)
    (_FOLDER / f"{name}.svg").write_text(driver.app.export_screenshot(title="Sapwood"), "utf-8")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home, patch("secrets.randbelow", lambda below: 7):
        os.environ["SAPWOOD_HOME"] = home
        asyncio.run(draw())
