"""Asking, stopping, and what the conversation shows."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual import events
from textual.widgets import Input

from app.tui.conversation import Conversation
from app.tui.effort import Effort, Models
from app.tui.turn import Standing, Turn
from app.tui.widgets.composer import Composer
from app.tui.widgets.turn_block import TurnBlock
from engine.protocol import AnyEvent, Phase, RunStarted, Trouble
from tests.app.streams import (
    REQUEST,
    beginning,
    failing_run,
    first_round,
    numbered,
    second_round,
    whole_run,
)
from tests.app.tui.driving import ToldEngine, running

pytestmark = pytest.mark.asyncio

PHASES: list[list[AnyEvent]] = [
    numbered([]),
    numbered([RunStarted(run="test", request=REQUEST), Phase(name="loading", model="Seedling")]),
    numbered([*beginning(), Phase(name="prefill", model="Seedling")]),
    numbered([*beginning(), *first_round()]),
    numbered([*beginning(), *first_round(), *second_round(), Phase(name="checking")]),
    numbered([*beginning(), *first_round(), *second_round(), Phase(name="judging")]),
]


async def test_a_question_gets_its_solution_and_its_answer() -> None:
    async with running() as driver:
        await driver.solve("How many apples?")
        await driver.until_shown("answer 8   score 0.95")
        screen = driver.screen()
        assert "How many apples?" in screen
        assert "votes 8 x2 · 9 x1" in screen
        assert "a demonstration model for simple stories" in screen


async def test_ctrl_j_makes_a_new_line_and_enter_sends_them_all() -> None:
    engine = ToldEngine()
    async with running(engine) as driver:
        await driver.press("a", "ctrl+j", "b", "enter")
        await driver.until(lambda: engine.requests)
        assert engine.requests[0].problem == "a\nb"


async def test_up_and_down_go_through_what_was_asked_and_keep_the_draft() -> None:
    async with running() as driver:
        await driver.solve("one")
        await driver.solve("two")
        composer = driver.app.chat.query_one(Composer)
        await driver.press("x", "up")
        assert composer.text == "two"
        await driver.press("up", "up")
        assert composer.text == "one"
        await driver.press("down", "down")
        assert composer.text == "x"


async def test_a_large_paste_goes_in_whole_and_a_huge_one_is_refused() -> None:
    async with running() as driver:
        composer = driver.app.chat.query_one(Composer)
        text = "line of text\n" * 5000
        driver.app.post_message(events.Paste(text))
        await driver.until(lambda: composer.text == text)
        driver.app.post_message(events.Paste(text * 3))
        await driver.until_shown("there is room for")
        assert composer.text == text


async def test_what_looks_like_markup_is_shown_as_it_is() -> None:
    words = "[red]Tom[/] has \x1b[31m3[/b] apples."
    async with running(ToldEngine(whole_run(text=words + "\n\n"))) as driver:
        await driver.solve("[b]How[/x] many?")
        await driver.until_shown("[red]Tom[/] has \\x1b[31m3")
        assert "[b]How[/x] many?" in driver.screen()


async def test_the_next_question_waits_and_then_has_its_turn() -> None:
    engine = ToldEngine(hold=12)
    async with running(engine) as driver:
        first = await driver.ask("first")
        second = await driver.ask("second")
        await driver.until_shown("1 queued")
        assert second.standing is Standing.QUEUED
        engine.release()
        await driver.until(lambda: first.view.ended and second.view.ended)
        assert [request.problem for request in engine.requests] == ["first", "second"]


@pytest.mark.parametrize(
    "script", PHASES, ids=["start", "load", "prompt", "search", "check", "judge"]
)
async def test_esc_stops_at_once_in_every_phase_and_keeps_what_is_written(
    script: list[AnyEvent],
) -> None:
    engine = ToldEngine([*script, *whole_run()[-1:]], hold=len(script))
    engine.deaf = True
    async with running(engine) as driver:
        turn = await driver.ask()
        heard = script[-1].at if script else 0.0
        await driver.until(lambda: engine.requests and turn.view.at >= heard)
        written = turn.text
        await driver.press("escape")
        assert turn.standing is Standing.STOPPED  # though the engine has not said a word
        assert engine.cancelled == [turn.id]
        await driver.until_shown("stopped")
        assert turn.text == written


async def test_a_stopped_question_that_waited_is_never_solved() -> None:
    engine = ToldEngine(hold=3)
    async with running(engine) as driver:
        first = await driver.ask("first")
        second = await driver.ask("second")
        await driver.until(lambda: first.started)
        await driver.press("escape")
        await driver.until(lambda: second.started or second.view.ended)
        await driver.press("escape")
        await driver.until(lambda: first.view.ended and second.view.ended)
        assert second.standing is Standing.STOPPED


async def test_retry_asks_the_same_with_the_effort_chosen_now() -> None:
    engine = ToldEngine()
    async with running(engine) as driver:
        await driver.solve("same")
        await driver.press("shift+tab", "ctrl+r")
        await driver.until(lambda: len(engine.requests) == 2)
        think, deep = engine.requests
        assert think.problem == deep.problem == "same"
        assert (think.search.n, deep.search.n) == (8, 32)
        assert think.seed != deep.seed
        assert think.log != deep.log


async def test_quick_is_one_greedy_path_without_the_verifier() -> None:
    engine = ToldEngine()
    async with running(engine) as driver:
        await driver.press("shift+tab", "shift+tab")
        await driver.until_shown("[quick]")
        await driver.solve()
        (request,) = engine.requests
        assert (request.search.policy, request.search.n) == ("greedy", 1)
        assert request.verifier is None
        assert request.sampling.temperature == 0


async def test_edit_brings_the_question_back_to_the_composer() -> None:
    async with running() as driver:
        await driver.solve("to be edited")
        driver.transcript.focus()
        await driver.press("e")
        assert driver.app.chat.query_one(Composer).text == "to be edited"
        assert driver.app.chat.query_one(Composer).has_focus


async def test_a_failure_says_what_happened_and_what_to_do() -> None:
    async with running(ToldEngine(failing_run(Trouble.MODEL), whole_run())) as driver:
        await driver.solve()
        await driver.until_shown("It did not work. Do it otherwise.")
        turn = await driver.solve()
        assert turn.standing is Standing.DONE


async def test_what_memory_is_too_short_for_is_run_anyway_only_when_the_user_is_sure() -> None:
    engine = ToldEngine(failing_run(Trouble.MEMORY), whole_run())
    async with running(engine) as driver:
        await driver.solve("too large")
        await driver.until_shown("A runs it anyway")
        assert "--force" not in driver.screen()
        driver.transcript.focus()
        await driver.press("A")
        await driver.until_shown("Run it anyway?")
        await driver.press("escape")
        await driver.until(lambda: driver.app.screen is driver.app.chat)
        assert len(engine.requests) == 1
        await driver.press("A")
        await driver.until_shown("Run it anyway?")
        await driver.press("y")
        await driver.until(lambda: len(engine.requests) == 2)
        assert [request.force for request in engine.requests] == [False, True]
        await driver.until(lambda: driver.turn.standing is Standing.DONE)
        assert driver.turn.branch == (2, 2)


async def test_an_engine_that_breaks_does_not_break_the_app() -> None:
    class Broken(ToldEngine):
        def solve(self, request, *, run=None):  # type: ignore[override]
            raise RuntimeError("no pipes")

    async with running(Broken()) as driver:
        turn = await driver.solve()
        await driver.until_shown("no pipes")
        assert turn.standing is Standing.FAILED


async def test_a_long_conversation_keeps_few_widgets_and_shows_the_rest_on_demand() -> None:
    requests = [Models().request(f"question {n}", Effort.QUICK) for n in range(19)]
    earlier = [Turn(request, Effort.QUICK) for request in requests]
    conversation = Conversation()
    for turn, before in zip(earlier, [None, *earlier], strict=False):
        turn.stop()
        turn.take()
        conversation.add(turn, before)
    async with running() as driver:
        driver.app.chat._reopen(conversation)
        await driver.until(lambda: len(driver.transcript.turns) == 19)
        for number in range(19, 25):
            await driver.app.chat.ask(f"question {number}")
        await driver.until(lambda: all(turn.view.ended for turn in driver.transcript.turns))
        assert len(list(driver.transcript.walk_children())) <= 200
        assert len(driver.transcript.query(TurnBlock)) == 20
        driver.transcript.focus()
        await driver.press("home")
        await driver.until(lambda: len(driver.transcript.query(TurnBlock)) == 25)
        await driver.until_shown("question 0")


async def test_a_text_file_is_put_into_the_question(tmp_path: Path) -> None:
    path = tmp_path / "problem.txt"
    path.write_text("How many are\nleft?", "utf-8")
    async with running() as driver:
        driver.app.chat.action_attach()
        await driver.until(lambda: driver.app.screen.query("#path"))
        await driver.press(*"x", "enter")
        await driver.until_shown("there is no such file")
        driver.app.screen.query_one("#path", Input).value = str(path)
        await driver.press("enter")
        composer = driver.app.chat.query_one(Composer)
        await driver.until(lambda: composer.text == "How many are\nleft?")
