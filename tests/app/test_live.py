import io
import re

import pytest
from rich.console import Console

from app.live import LiveTree
from app.run_view import RunView
from engine.protocol import NodeOpened, Phase
from tests.app.streams import whole_run

SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Screen(io.StringIO):
    encoding = "utf-8"  # type: ignore[assignment]

    def isatty(self) -> bool:
        return True


def show(
    events: list,
    *,
    width: int = 80,
    height: int = 24,
    screen: Screen | None = None,
) -> tuple[str, list[str]]:
    """What was written in all, and the pictures in it."""
    screen = screen or Screen()
    console = Console(
        file=screen, force_terminal=True, width=width, height=height, markup=False, highlight=False
    )
    view = RunView()
    live = LiveTree(view, console)
    pictures: list[str] = []
    live.start()
    for event in events:
        view.update(event)
        live.show(event)
        before = screen.tell()
        live.tick()
        pictures.append(SEQUENCE.sub("", screen.getvalue()[before:]))
    live.close()
    return screen.getvalue(), pictures


@pytest.mark.parametrize(("width", "height"), [(80, 24), (40, 10), (20, 5)])
def test_a_picture_never_exceeds_the_terminal(width: int, height: int) -> None:
    events = [*whole_run(text="word " * 100)[:-1], *(NodeOpened(lineage=(i,)) for i in range(99))]
    _, pictures = show(events, width=width, height=height)
    for picture in pictures:
        lines = picture.replace("\r", "").split("\n")
        assert len(lines) < height
        assert max(map(len, lines)) < width


def test_it_shows_the_state_the_score_and_the_words() -> None:
    _, pictures = show(whole_run())
    assert "◉ ▰▰▰▰▱ 0.90 · Tom has 3 apples." in pictures[7]
    assert "a demonstration model for simple stories" in pictures[7]
    assert "✕ +2 pruned (best 0.40)" in pictures[-3]
    assert "4 beams · 64 tokens · 100 tok/s" in pictures[-3]


def test_it_shows_how_far_the_loading_is() -> None:
    _, pictures = show([Phase(name="loading", done=0.25)])
    assert pictures[0].strip() == "loading 25%"


def test_the_end_replaces_the_picture() -> None:
    written, _ = show(whole_run())
    tail = SEQUENCE.sub("", written[written.rindex("\x1b[2K") :])
    assert "★ ▰▰▰▰▰ 0.95 · 3 + 5 = 8, so \\boxed{8}" in tail
    assert "votes: 8 x2 (1.80) · 9 x1 (0.30)" in tail
    assert written.count("\x1b[?25l") == written.count("\x1b[?25h") == 1


def test_nothing_is_drawn_while_nothing_changes() -> None:
    screen = Screen()
    live = LiveTree(RunView(), Console(file=screen, force_terminal=True))
    live.start()
    live.tick()
    before = screen.tell()
    live.tick()
    live.tick()
    assert screen.tell() == before
    live.close()


def test_text_of_a_model_is_only_text() -> None:
    evil = "[bold red]\x1b]0;title\x07\x9b2J:smile: "
    written, pictures = show(whole_run(answer=evil, text=evil))
    assert "[bold red]\\x1b]0;title\\x07\\x9b2J:smile:" in pictures[8]
    assert "\x1b]" not in written
    assert "\x9b" not in written


def test_no_color_leaves_the_glyphs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    written, pictures = show(whole_run())
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]", written)
    assert "● ▰▰▰▰▱ 0.90" in pictures[-3]


def test_an_encoding_without_the_glyphs_gets_others() -> None:
    class Ascii(Screen):
        encoding = "ascii"  # type: ignore[assignment]

    written, _ = show(whole_run(answer="∑", text="Ein Übel\n\n"), screen=Ascii())
    assert written.isascii()
    assert "= ##### 0.95 - 3 + 5 = 8, so \\boxed{?}" in written
