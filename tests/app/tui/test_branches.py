"""Questions asked otherwise, beside what was there; and conversations written to files."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import Input

from app.store import Store
from app.tui.conversation import Conversation
from app.tui.effort import Effort, Models
from app.tui.settings import Settings
from app.tui.turn import Turn
from app.tui.widgets.composer import Composer
from engine.protocol import Drafting
from tests.app.tui.driving import SMALL, Driver, ToldEngine, running
from tests.app.tui.test_sessions import open_sessions


def problems(driver: Driver) -> list[str]:
    return [turn.problem for turn in driver.transcript.turns]


def test_the_open_branch_is_the_one_chosen_last_with_what_followed_it() -> None:
    conversation = Conversation()
    one, two, other, after = (
        Turn(Models().request(name, Effort.QUICK), Effort.QUICK) for name in "abcd"
    )
    conversation.add(one, None)
    conversation.add(two, one)
    conversation.add(other, None)
    conversation.add(after, other)
    assert conversation.path == [other, after]
    conversation.open(one)
    assert conversation.path == [one, two]
    assert conversation.beside(two) == [two]
    assert [turn.branch for turn in conversation.beside(one)] == [(1, 2), (2, 2)]


@pytest.mark.asyncio
async def test_a_changed_question_begins_a_branch_and_the_old_one_stays() -> None:
    async with running() as driver:
        for problem in ("one", "two", "three"):
            await driver.solve(problem)
        driver.transcript.select(driver.transcript.turns[1])
        driver.transcript.focus()
        await driver.press("e")
        await driver.until_shown("sending begins a branch")
        await driver.press("!", "enter")
        await driver.until(lambda: problems(driver) == ["one", "two!"])
        await driver.until_shown("◀ 2/2 ▶")
        driver.transcript.focus()
        await driver.press("left")
        await driver.until(lambda: problems(driver) == ["one", "two", "three"])
        assert driver.turn.problem == "two"
        await driver.until_shown("◀ 1/2 ▶")
    async with running() as driver:  # and so it is after a restart
        await open_sessions(driver)
        await driver.press("down", "enter")
        await driver.until(lambda: problems(driver) == ["one", "two", "three"])
        driver.transcript.select(driver.transcript.turns[1])
        driver.transcript.focus()
        await driver.press("right")
        await driver.until(lambda: problems(driver) == ["one", "two!"])


@pytest.mark.asyncio
async def test_esc_leaves_a_changed_question_as_a_new_one() -> None:
    async with running() as driver:
        await driver.solve("one")
        driver.transcript.focus()
        await driver.press("e", "escape", "enter")
        await driver.until(lambda: problems(driver) == ["one", "one"])


@pytest.mark.asyncio
async def test_a_retry_with_other_settings_is_a_branch_with_those() -> None:
    engine = ToldEngine()
    async with running(engine) as driver:
        await driver.solve("same")
        driver.transcript.focus()
        await driver.press("R")
        await driver.until(lambda: driver.app.screen.query("#policy"))
        driver.app.screen.query_one("#n", Input).value = "many"
        await driver.press("enter")
        await driver.until_shown("n is a whole number from 1 to 256.")
        driver.app.screen.query_one("#n", Input).value = "16"
        driver.app.screen.query_one("#policy", Input).value = "dvts"
        driver.app.screen.query_one("#rank-with", Input).value = "a-judge"
        await driver.press("enter")
        await driver.until(lambda: len(engine.requests) == 2)
        assert (engine.requests[1].search.policy, engine.requests[1].search.n) == ("dvts", 16)
        assert [request.rerank for request in engine.requests] == [None, "a-judge"]
        assert engine.requests[1].seed == engine.requests[0].seed
        await driver.until(lambda: driver.turn.branch == (2, 2))


@pytest.mark.asyncio
async def test_a_retry_may_have_a_model_that_drafts() -> None:
    engine = ToldEngine()
    settings = Settings(welcomed=True, models=Models("seedling-target", None))
    async with running(engine, settings=settings, size=SMALL) as driver:
        await driver.solve("same")
        driver.transcript.focus()
        await driver.press("R")
        await driver.until(lambda: driver.app.screen.query("#policy"))
        draft, accept = (
            driver.app.screen.query_one(f"#{name}", Input) for name in ("draft-with", "accept")
        )
        for drafts, accepts, trouble in (
            ("", "tokens", "accept means nothing without a model to draft with."),
            ("seedling", "mostly", "accept is semantic or tokens."),
            ("seedling-target", "semantic", "There are no predictors"),
            ("smollm2-135m-instruct", "", "other tokens than the generator"),
            ("nobody", "", "'nobody'"),
        ):
            draft.value, accept.value = drafts, accepts
            await driver.press("enter")
            await driver.until_shown(trouble)
        draft.value = "seedling"
        accept.value = ""
        await driver.press("enter")
        await driver.until(lambda: len(engine.requests) == 2)
        assert engine.requests[1].drafting == Drafting(draft="seedling", accept="semantic")
        await driver.until(lambda: driver.turn.view.ended)
        driver.transcript.focus()
        await driver.press("R")
        await driver.until(lambda: driver.app.screen.query("#policy"))
        await driver.press("enter")
        await driver.until(lambda: len(engine.requests) == 3)
        assert engine.requests[2].drafting == engine.requests[1].drafting


@pytest.mark.asyncio
async def test_the_conversation_is_written_to_a_file_and_over_one_only_when_asked_twice(
    tmp_path: Path,
) -> None:
    async with running() as driver:
        await driver.solve("to be read elsewhere")
        path = tmp_path / "talk.html"
        path.write_text("mine")
        await driver.press("f3")
        await driver.until(lambda: driver.app.screen.query("#path"))
        driver.app.screen.query_one("#path", Input).value = str(path)
        await driver.press("enter")
        await driver.until_shown("It is there already.")
        assert path.read_text() == "mine"
        await driver.press("enter")
        await driver.until(lambda: "to be read elsewhere" in path.read_text("utf-8"))
        await driver.until(lambda: driver.app.chat.query_one(Composer).has_focus)
    with Store() as store:
        assert len(store.sessions()) == 1
