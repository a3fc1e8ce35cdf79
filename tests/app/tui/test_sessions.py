"""Conversations that are kept, found and opened again."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import Input, OptionList

from app.store import State, Store
from app.tui.effort import Models
from app.tui.screens.sessions import SessionsScreen
from app.tui.settings import Settings
from app.tui.turn import Standing
from app.tui.widgets.status_line import StatusLine
from tests.app.streams import whole_run
from tests.app.tui.driving import Driver, ToldEngine, running

pytestmark = pytest.mark.asyncio


async def open_sessions(driver: Driver) -> OptionList:
    await driver.press("ctrl+o")
    await driver.until(lambda: isinstance(driver.app.screen, SessionsScreen))
    await driver.until(lambda: driver.app.screen.query("#list"))
    return driver.app.screen.query_one("#list", OptionList)


async def test_a_conversation_is_there_after_a_restart_with_its_tree() -> None:
    async with running() as driver:
        await driver.solve("How many apples?")
        rows = driver.rows()
    async with running() as driver:
        await open_sessions(driver)
        await driver.until_shown("How many apples?  (1)")
        await driver.press("down", "enter")
        await driver.until(lambda: driver.transcript.turns)
        await driver.until(lambda: driver.rows() == rows)
        await driver.until_shown("answer 8   score 0.95")
        await driver.solve("And pears?")
    with Store() as store:
        (session,) = store.sessions()
        path = store.path(session.head)
    assert [message.text for message in path[::2]] == ["How many apples?", "And pears?"]
    assert [message.answer for message in path[1::2]] == ["8", "8"]


async def test_what_was_cut_off_with_the_program_comes_back_as_stopped() -> None:
    async with running(ToldEngine(whole_run(), hold=12)) as driver:
        turn = await driver.ask("cut off")
        await driver.until(lambda: turn.view.nodes)
    with Store() as store:
        (session,) = store.sessions()
        assert store.path(session.head)[-1].state is State.RUNNING
    async with running() as driver:
        await open_sessions(driver)
        await driver.press("down", "enter")
        await driver.until(lambda: driver.transcript.turns)
        assert driver.turn.standing is Standing.STOPPED


async def test_a_new_conversation_begins_empty_and_is_kept_apart() -> None:
    async with running() as driver:
        await driver.solve("one")
        await driver.press("ctrl+n")
        await driver.until(lambda: not driver.transcript.turns)
        assert driver.rows() == []
        await driver.solve("two")
    with Store() as store:
        assert [session.title for session in store.sessions()] == ["two", "one"]


async def test_search_delete_and_undo() -> None:
    async with running() as driver:
        await driver.solve("apples")
        await driver.press("ctrl+n")
        await driver.until(lambda: not driver.transcript.turns)
        await driver.solve("pears")
        sessions = await open_sessions(driver)
        await driver.until(lambda: sessions.option_count == 2)
        await driver.press(*"pea")
        await driver.until(lambda: sessions.option_count == 1)
        await driver.press("down", "delete")
        await driver.until(lambda: sessions.option_count == 0)
        await driver.press("ctrl+z")
        await driver.until(lambda: sessions.option_count == 1)


async def test_a_conversation_gets_another_title() -> None:
    async with running() as driver:
        await driver.solve("apples")
        sessions = await open_sessions(driver)
        await driver.until(lambda: sessions.option_count == 1)
        await driver.press("down", "f2")
        driver.app.screen.query_one("#words", Input).value = "Of fruit"
        await driver.press("enter")
        await driver.until_shown("Of fruit")
    with Store() as store:
        assert store.sessions()[0].title == "Of fruit"


async def test_a_reopened_run_tells_of_the_models_that_it_had_and_of_what_it_cost() -> None:
    models = Models(
        generator="seedling-target", verifier="seedling", draft="seedling", preset="mine"
    )
    async with running(settings=Settings(welcomed=True, models=models), size=(200, 50)) as driver:
        await driver.solve("How many apples?")
        await driver.until_shown("done · best 0.95: 8")
        line = driver.app.chat.query_one(StatusLine)
        live = line._said
        *_, models_said, tokens_said = live
        assert models_said == "mine: seedling-target + seedling, drafted by seedling (by tokens)"
        assert tokens_said.endswith(" tokens")
    async with running(size=(200, 50)) as driver:  # with the models of the demonstration
        await open_sessions(driver)
        await driver.until_shown("How many apples?  (1)")
        await driver.press("down", "enter")
        await driver.until(lambda: driver.transcript.turns)
        line = driver.app.chat.query_one(StatusLine)
        await driver.until(lambda: line._said == [*live[:-1], "next seedling", tokens_said])


async def test_a_run_whose_log_is_gone_still_tells_of_its_models() -> None:
    async with running() as driver:
        log = (await driver.solve()).request.log
    assert log is not None
    Path(log).unlink()
    models = Models(generator="seedling-target", verifier=None)
    async with running(settings=Settings(welcomed=True, models=models)) as driver:
        await open_sessions(driver)
        await driver.until_shown("How many?  (1)")
        await driver.press("down", "enter")
        await driver.until_shown("done · best 8")
        await driver.until_shown("seedling · next seedling-target")
