"""Keys that come faster than the app takes them in, as they do on a busy machine."""

from __future__ import annotations

import pytest
from textual import events
from textual.widgets import Input

from app.tui.effort import Effort
from app.tui.turn import Standing
from app.tui.widgets.composer import Composer
from tests.app.tui.driving import Driver, ToldEngine, running

pytestmark = pytest.mark.asyncio


async def written(driver: Driver, text: str) -> None:
    composer = driver.app.chat.query_one(Composer)
    await driver.until(lambda: composer.text == text and composer.has_focus, limit=10)


async def test_text_typed_after_a_key_that_leads_to_the_composer_is_written_there() -> None:
    async with running() as driver:
        await driver.solve("How many?")
        composer = driver.app.chat.query_one(Composer)
        for place in (driver.tree, driver.transcript):
            for keys, text in (
                (("escape", *"better"), "better"),
                (("alt+b", *"etter"), "better"),
                (("W", *"hyper"), "Whyper"),
                (("e", *"mpty"), "How many?mpty"),
            ):
                composer.text = ""
                place.focus()
                await driver.until(lambda place=place: place.has_focus)
                driver.burst(*keys)
                await written(driver, text)
                await driver.press("escape")


async def test_what_is_pasted_after_esc_is_in_the_composer() -> None:
    async with running() as driver:
        driver.tree.focus()
        await driver.until(lambda: driver.tree.has_focus)
        driver.burst("escape", "a")
        driver.app.post_message(events.Paste("pasted"))
        driver.burst("b")
        await written(driver, "apastedb")


async def test_tab_right_after_shift_tab_goes_on() -> None:
    async with running() as driver:
        await driver.solve()
        driver.burst("shift+tab", "tab", "tab", "shift+tab")
        await driver.until(lambda: driver.tree.has_focus)
        await driver.until(lambda: driver.app.chat.effort is Effort.QUICK)


async def test_words_typed_after_slash_are_searched_for() -> None:
    async with running() as driver:
        await driver.solve()
        driver.tree.focus()
        await driver.until(lambda: driver.tree.has_focus)
        driver.burst("slash", *"apples", "enter")
        await driver.until_shown("4 found")
        assert driver.app.chat.query_one("#search", Input).value == "apples"


async def test_esc_right_after_a_question_stops_it() -> None:
    async with running(ToldEngine(hold=3)) as driver:
        driver.burst("a", "enter", "escape")
        await driver.until(lambda: driver.transcript.turns)
        await driver.until(lambda: driver.transcript.turns[0].standing is Standing.STOPPED)


async def test_a_dialog_that_closes_hands_the_keys_on() -> None:
    async with running() as driver:
        await driver.press("f2")
        await driver.until(lambda: driver.app.screen.query("#path"))
        driver.burst(*"xy", "escape", *"on")
        await written(driver, "on")


async def test_a_notice_covers_nothing_that_is_being_written() -> None:
    async with running() as driver:
        driver.app.notify("Here I am.", timeout=60)
        await driver.until_shown("Here I am.")
        composer = driver.app.chat.query_one(Composer)
        places = [toast.region for toast in driver.app.screen.query("Toast")]
        assert places
        assert not any(place.overlaps(composer.region) for place in places)
