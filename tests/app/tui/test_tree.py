"""The reasoning tree and what belongs to it."""

from __future__ import annotations

import random

import pytest
from textual.widgets import Input

from app.run_view import RunView
from app.tui.feed import Change, Feed
from app.tui.turn import Folds
from app.tui.widgets.node_detail import NodeDetail
from app.tui.widgets.scrubber import Scrubber
from app.tui.widgets.timeline import Timeline
from engine.protocol import (
    AnyEvent,
    BeamsSelected,
    DraftsDropped,
    NodeOpened,
    NodesPruned,
    RunResumed,
)
from tests.app.streams import beginning, first_round, node, numbered, second_round, whole_run
from tests.app.tui.driving import SMALL, Driver, ToldEngine, running

pytestmark = pytest.mark.asyncio

FOLDED = ["0", "  0.0", "  +1", "3", "  3.0", "+2"]


async def open_run(driver: Driver) -> None:
    await driver.solve()
    await driver.until(lambda: driver.rows() == FOLDED)
    driver.tree.focus()
    await driver.until(lambda: driver.tree.has_focus)


async def test_pruned_steps_are_one_row_with_their_number_and_best_score() -> None:
    async with running() as driver:
        await open_run(driver)
        await driver.until_shown("✕ +2 pruned (best 0.40)")
        assert "● ▰▰▰▰▱ 0.90 · Tom has 3 apples." in driver.screen()


async def test_enter_opens_a_fold_and_p_opens_and_closes_all() -> None:
    async with running() as driver:
        await open_run(driver)
        await driver.press("end", "enter")
        await driver.until(lambda: driver.rows() == [*FOLDED[:3], "1", "2", *FOLDED[3:5]])
        assert driver.tree.node is driver.turn.view.nodes[(1,)]
        await driver.press("p")
        await driver.until(lambda: "  0.1" in driver.rows())
        await driver.press("p")
        await driver.until(lambda: driver.rows() == FOLDED)


async def test_the_panel_says_why_a_step_was_pruned_and_how_it_ranks() -> None:
    async with running() as driver:
        await open_run(driver)
        await driver.press("p", "home", "down", "down", "down")
        await driver.until_shown("rank 3 of 4 at this depth")
        screen = driver.screen()
        assert "pruned: ranked below 2 others" in screen
        assert "scores 0.40" in screen
        assert "19 tokens" in screen
        assert "Tom has 5 apples." in screen


async def test_the_cursor_follows_the_best_path_until_the_user_moves() -> None:
    events = whole_run()
    async with running(ToldEngine(events, hold=len(events) - 2)) as driver:
        turn = await driver.ask()
        await driver.until(lambda: turn.view.leader is not None)
        await driver.until(lambda: driver.tree.node is turn.view.leader)
        await driver.until_shown("following")
        driver.tree.focus()
        await driver.press("home")
        await driver.until(lambda: "following" not in driver.screen())
        assert driver.tree.node is turn.view.nodes[(0,)]
        await driver.press("f")
        await driver.until(lambda: driver.tree.node is turn.view.leader)


async def test_b_jumps_to_the_chosen_path_wherever_the_cursor_is() -> None:
    async with running() as driver:
        await open_run(driver)
        await driver.press("end", "b")
        await driver.until(lambda: driver.tree.node is driver.turn.view.leader)


async def test_search_goes_from_match_to_match_and_into_folds() -> None:
    async with running() as driver:
        await open_run(driver)
        await driver.press("home", "slash")
        await driver.until(lambda: driver.app.chat.query_one("#search", Input).has_focus)
        await driver.press(*"2", "space", *"apples", "enter")
        await driver.until(lambda: driver.tree.node is driver.turn.view.nodes[(2,)])
        assert "1 found" in driver.screen()
        await driver.press("escape")
        assert driver.tree.has_focus


async def test_what_was_collapsed_stays_so_when_the_tree_is_built_again() -> None:
    async with running() as driver:
        await open_run(driver)
        await driver.press("home", "enter")
        collapsed = ["0", "3", "  3.0", "+2"]
        await driver.until(lambda: driver.rows() == collapsed)
        driver.tree.sync(Change(everything=True))
        assert driver.rows() == collapsed


async def test_a_branch_that_came_to_nothing_is_folded_with_all_that_was_below_it() -> None:
    events = [
        *beginning(),
        *node((0,), "one", 0.9),
        *node((1,), "two", 0.8),
        BeamsSelected(round=0, kept=((0,), (1,))),
        *node((0, 0), "three", 0.9),
        *node((1, 0), "four", 0.1),
        NodesPruned(round=1, lineages=((1, 0),)),
        BeamsSelected(round=1, kept=((0, 0),)),
    ]
    async with running() as driver:
        feed = Feed()
        driver.tree.open(feed.view, Folds())
        driver.tree.sync(feed.take(numbered(events)))
        assert driver.rows() == ["0", "  0.0", "+1"]
        driver.tree.go_to(feed.view.nodes[(1, 0)])
        assert driver.rows() == ["0", "  0.0", "1", "  1.0"]
        driver.tree.sync(feed.take([NodeOpened(lineage=(1, 1))]))
        assert driver.rows() == ["0", "  0.0", "1", "  1.0", "  1.1"]


async def test_left_and_right_fold_and_unfold_and_brackets_go_to_siblings() -> None:
    async with running() as driver:
        await open_run(driver)
        await driver.press("home", "left")
        assert driver.rows() == ["0", "3", "  3.0", "+2"]
        await driver.press("right")
        assert driver.rows() == FOLDED
        await driver.press("right_square_bracket")
        assert driver.tree.node is driver.turn.view.nodes[(3,)]
        await driver.press("right")
        assert driver.tree.node is driver.turn.view.nodes[(3, 0)]
        await driver.press("left", "left_square_bracket")
        assert driver.tree.node is driver.turn.view.nodes[(0,)]


async def test_the_mouse_moves_the_cursor_and_opens_folds() -> None:
    async with running() as driver:
        await open_run(driver)
        await driver.pilot.click("#tree", offset=(3, 3))
        await driver.until(lambda: driver.tree.node is driver.turn.view.nodes[(3,)])
        await driver.pilot.click("#tree", offset=(3, 5))
        await driver.until(lambda: len(driver.rows()) == len(FOLDED) + 1)


async def test_the_cursor_is_not_lost_when_its_row_is_folded_away() -> None:
    async with running() as driver:
        feed = Feed()
        feed.take(numbered([*beginning(), *node((0,), "one", 0.9), *node((1,), "two", 0.1)]))
        driver.tree.open(feed.view, Folds())
        driver.tree.follow = False
        driver.tree.go_to(feed.view.nodes[(1,)])
        driver.tree.sync(feed.take(numbered(first_round())[-3:-1]))
        assert driver.tree.cursor_line is not None
        assert isinstance(driver.rows(), list)


@pytest.mark.parametrize("seed", range(5))
async def test_rows_kept_up_to_date_are_those_of_a_tree_built_at_the_end(seed: int) -> None:
    chance = random.Random(seed)
    events = grown(chance)
    async with running() as driver:
        feed, folds = Feed(), Folds()
        folds.unfolded = {(chance.randrange(4),)}
        driver.tree.open(feed.view, folds)
        while events:
            size = chance.randrange(1, 9)
            driver.tree.sync(feed.take(events[:size]))
            del events[:size]
        live = driver.rows()
        driver.tree.open(feed.view, folds)
        assert driver.rows() == live


async def test_two_paths_are_compared_side_by_side_from_where_they_part() -> None:
    async with running() as driver:
        await open_run(driver)
        await driver.press("p", "home", "down", "c")
        await driver.until_shown("◆ ★")
        await driver.press("down", "c")
        await driver.until_shown("They have 1 step in common.")
        lines = driver.screen().splitlines()
        (heads,) = [line for line in lines if "▶ 2" in line]
        assert "0.95" in heads
        assert "0.30" in heads
        assert any("3 + 5 = 8" in line and "3 + 5 = 9" in line for line in lines)
        await driver.press("escape")
        await driver.until(lambda: "◆" not in driver.screen())


async def test_the_timeline_has_a_row_a_round() -> None:
    async with running() as driver:
        await open_run(driver)
        await driver.press("t")
        await driver.until_shown("round 1: kept 2 of 4, best 0.90")
        assert "round 2: kept 0 of 3, 2 completed, best 0.95" in driver.screen()
        assert "answer 8" in driver.screen()


async def test_a_finished_run_is_seen_at_each_of_its_rounds() -> None:
    async with running() as driver:
        await open_run(driver)
        await driver.press("comma")
        await driver.until_shown("replay")
        assert "0.0" in "".join(driver.rows())
        await driver.press("comma")
        await driver.until(lambda: driver.rows() == ["0", "3", "+2"])
        await driver.press("comma")
        await driver.until(lambda: driver.rows() == [])
        await driver.press("full_stop", "full_stop", "full_stop")
        await driver.until(lambda: driver.rows() == FOLDED)
        await driver.press("escape")
        await driver.until(lambda: "replay" not in driver.screen())


async def test_a_round_of_the_timeline_leads_to_its_moment() -> None:
    async with running() as driver:
        await open_run(driver)
        await driver.press("t")
        timeline = driver.app.chat.query_one(Timeline)
        await driver.until(lambda: timeline.has_focus)
        await driver.press("home", "enter")
        await driver.until(lambda: driver.rows() == ["0", "3", "+2"])


async def test_r_plays_a_run_from_its_start_to_its_end() -> None:
    async with running() as driver:
        await open_run(driver)
        await driver.press("r")
        scrubber = driver.app.chat.query_one(Scrubber)
        await driver.until(lambda: scrubber.playing and scrubber.at < 1.0)
        await driver.until(lambda: not scrubber.playing)
        assert driver.rows() == FOLDED


async def test_a_lost_worker_leaves_no_row_as_if_it_were_still_written() -> None:
    async with running() as driver:
        feed = Feed()
        driver.tree.open(feed.view, Folds())
        driver.tree.sync(feed.take([*numbered(beginning()), NodeOpened(lineage=(0,))]))
        await driver.until_shown("◐")
        driver.tree.sync(feed.take([RunResumed(nodes=0)]))
        await driver.until_shown("○ ·")


async def test_a_draft_that_was_dropped_is_a_row_no_more() -> None:
    async with running() as driver:
        feed = Feed()
        driver.tree.open(feed.view, Folds())
        driver.tree.sync(feed.take([*numbered(beginning()), *numbered(node((0,), "one", 0.9))]))
        driver.tree.sync(feed.take([NodeOpened(lineage=(0, 0))]))
        assert driver.rows() == ["0", "  0.0"]
        driver.tree.sync(feed.take([DraftsDropped(lineages=((0, 0), (5, 5)))]))
        assert driver.rows() == ["0", "  +1"]


async def test_on_a_small_terminal_the_tree_is_a_tab() -> None:
    async with running(size=SMALL) as driver:
        await driver.solve()
        await driver.until_shown("answer 8   score 0.95")
        assert "pruned" not in driver.screen()
        await driver.press("ctrl+t")
        await driver.until_shown("+2 pruned")
        assert driver.tree.has_focus
        await driver.press("escape")
        await driver.until_shown("answer 8   score 0.95")


async def test_the_panel_shows_the_problem_before_there_is_a_step() -> None:
    async with running() as driver:
        detail = driver.app.chat.query_one(NodeDetail)
        view = RunView()
        for event in numbered(beginning()):
            view.update(event)
        detail.show(None, view, {})
        await driver.until_shown("Tom has 3 apples and finds 5. How many?")


def grown(chance: random.Random) -> list[AnyEvent]:
    """The events of two rounds, those of different nodes shuffled into one another."""
    lists = [node((i,), f"step {i}", chance.random()) for i in (2, 0, 3, 1)]
    mixed = []
    while lists:
        some = chance.choice(lists)
        mixed.append(some.pop(0))
        lists = [rest for rest in lists if rest]
    return numbered([*beginning(), *mixed, *first_round()[-3:], *second_round()])
