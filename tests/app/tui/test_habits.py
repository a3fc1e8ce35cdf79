"""Help, themes, the palette, copying, leaving."""

from __future__ import annotations

import pytest
from textual.command import CommandPalette

from app.tui.screens.help import HelpScreen
from app.tui.screens.welcome import WelcomeScreen
from app.tui.settings import Settings, load_settings
from app.tui.themes import THEMES
from app.tui.widgets.composer import Composer
from tests.app.tui.driving import SMALL, WIDE, running

pytestmark = pytest.mark.asyncio


async def test_help_tells_every_key_with_the_id_that_changes_it() -> None:
    async with running(size=(120, 100)) as driver:
        await driver.press("f1")
        await driver.until(lambda: isinstance(driver.app.screen, HelpScreen))
        await driver.until_shown("tree.follow")
        for words in ("Composer", "chat.stop", "ctrl+r", "being written"):
            assert words in driver.screen()
        await driver.press("escape")
        await driver.until(lambda: not isinstance(driver.app.screen, HelpScreen))


async def test_keys_of_the_user_take_the_place_of_ours() -> None:
    settings = Settings(welcomed=True, keys={"app.help": "f9"})
    async with running(settings=settings) as driver:
        await driver.press("f9")
        await driver.until(lambda: isinstance(driver.app.screen, HelpScreen))


@pytest.mark.parametrize("size", [WIDE, SMALL], ids=["wide", "small"])
async def test_the_first_start_offers_one_key_and_only_once(size: tuple[int, int]) -> None:
    async with running(settings=Settings(), size=size) as driver:
        await driver.until(lambda: isinstance(driver.app.screen, WelcomeScreen))
        await driver.until_shown("Enter solves it.")
        await driver.press("enter")
        await driver.until(lambda: driver.transcript.turns and driver.turn.view.ended)
    assert load_settings().welcomed


async def test_a_theme_is_remembered() -> None:
    async with running() as driver:
        driver.app.theme = "sapwood-light"
        await driver.until(lambda: load_settings().theme == "sapwood-light")


@pytest.mark.parametrize("theme", [theme.name for theme in THEMES])
async def test_every_theme_shows_a_run(theme: str) -> None:
    async with running(settings=Settings(welcomed=True, theme=theme)) as driver:
        await driver.solve()
        await driver.until_shown("+2 pruned")


async def test_without_colour_no_colour_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with running() as driver:
        await driver.solve()
        await driver.until_shown("+2 pruned")
        strips = driver.app.screen._compositor.render_strips()
        styles = [segment.style for strip in strips for segment in strip if segment.style]
        colours = {style.color.get_truecolor() for style in styles if style.color}
        assert all(red == green == blue for red, green, blue in colours)


async def test_copy_takes_the_source_of_the_solution(monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[str] = []

    async def tool(text: str) -> bool:
        copied.append(text)
        return True

    monkeypatch.setattr("app.tui.app.copy_natively", tool)
    async with running() as driver:
        turn = await driver.solve()
        driver.transcript.focus()
        await driver.press("y")
        await driver.until(lambda: copied == [turn.text])
        driver.tree.focus()
        await driver.press("home", "Y")
        await driver.until(lambda: copied[1:] == ["Tom has 3 apples.\n\n"])


async def test_the_palette_finds_commands_by_name() -> None:
    async with running() as driver:
        await driver.press("ctrl+p")
        await driver.until(lambda: isinstance(driver.app.screen, CommandPalette))
        await driver.press(*"effort")
        await driver.until_shown("Effort: deep")


async def test_ctrl_c_twice_leaves() -> None:
    async with running() as driver:
        await driver.press("tab", "ctrl+c")
        await driver.until_shown("Ctrl+C again leaves.")
        await driver.press("ctrl+c")
        await driver.until(lambda: not driver.app.is_running)


async def test_tab_goes_from_the_composer_to_the_conversation_and_to_the_tree() -> None:
    for size in (WIDE, SMALL):
        async with running(size=size) as driver:
            await driver.solve()
            assert driver.app.chat.query_one("#composer").has_focus
            await driver.press("tab")
            await driver.until(lambda: driver.transcript.has_focus)


async def test_what_is_typed_anywhere_goes_to_the_composer() -> None:
    async with running() as driver:
        await driver.solve()
        composer = driver.app.chat.query_one(Composer)
        for place in (driver.transcript, driver.tree):
            place.focus()
            await driver.press("W", "h", "y")
            assert composer.has_focus
            assert composer.text == "Why"
            composer.text = ""


@pytest.mark.parametrize("width", [60, 80, 100, 160])
async def test_the_keys_that_are_shown_are_shown_whole(width: int) -> None:
    async with running(size=(width, 24)) as driver:
        for place in (driver.app.chat.query_one(Composer), driver.transcript, driver.tree):
            place.focus()
            await driver.until_shown("f1 Help")
            line = driver.screen().splitlines()[-1]
            assert len(line) <= width
            assert all(" " in hint for hint in line.strip().split("  "))


async def test_a_click_on_a_key_does_what_the_key_does() -> None:
    async with running() as driver:
        place = driver.screen().splitlines()[-1].index("f1 Help")
        await driver.pilot.click("KeyHints", offset=(place, 0))
        await driver.until(lambda: isinstance(driver.app.screen, HelpScreen))
