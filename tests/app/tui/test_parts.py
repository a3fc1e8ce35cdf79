"""The parts of the app that need no screen."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from app.run_view import State
from app.tui.clipboard import native_tool
from app.tui.effort import Effort, Models
from app.tui.feed import Feed
from app.tui.fitting import fitting
from app.tui.replay import Replay
from app.tui.search import Search
from app.tui.settings import Settings, load_settings, save_settings, settings_path
from app.tui.shown import as_line, as_markdown, as_text, without_options
from app.tui.turn import Turn
from app.tui.widgets.memory_line import memory_bar, memory_words
from app.tui.widgets.status_line import StatusLine
from engine.protocol import Counters, Memory, ModelMemory, RunFinished, RunResumed, Stop
from tests.app.streams import (
    answered,
    beginning,
    first_round,
    numbered,
    second_round,
    view_of,
    whole_run,
)


def test_a_feed_names_the_nodes_that_look_different_now() -> None:
    events = whole_run()
    feed = Feed()
    opened = feed.take(events[:4])
    assert {node.lineage for node in opened.nodes} == {(0,)}
    feed.take(events[4:-1])
    assert feed.times[(0,)].opened == events[3].at
    assert feed.times[(0,)].finished == events[6].at


def test_goodput_is_mean_tokens_of_a_finished_beam_by_its_mean_time() -> None:
    feed = Feed()
    events = whole_run()
    feed.take(events[:20])
    assert feed.goodput is None
    feed.take(events[20:])
    beams = [(0, 0), (3, 0)]
    tokens = [sum(step.tokens for step in feed.view.nodes[b].path()) for b in beams]
    seconds = [(feed.times[b].finished or 0) - feed.times[b[:1]].opened for b in beams]
    assert feed.goodput == pytest.approx(sum(tokens) / sum(seconds))


def test_memory_is_split_into_weights_cache_and_what_is_free() -> None:
    memory = Memory(
        process=900 << 20,
        generator_cells=0,
        generator_capacity=0,
        device="RAM",
        budget=4 << 30,
        generator=ModelMemory(weights=1 << 30, cache_used=256 << 20, cache_free=256 << 20),
        verifier=ModelMemory(weights=1 << 30, cache_free=512 << 20, offloaded=512 << 20),
    )
    assert memory_bar(memory, 16) == "[████▓▒│████▒▒···]"
    words = memory_words(memory)
    assert words[0] == "3.0 GiB of 4.0 GiB"
    assert words[1] == "gen weights █ 1.0 GiB KV ▓▒ 256 MiB/512 MiB"
    assert "offloaded 512 MiB" in words


def test_parts_of_a_line_are_left_out_whole_the_least_important_first() -> None:
    parts = ["done", "best 7", "a very long one", "x"]
    assert fitting(parts, 100, gap=3) == [0, 1, 2, 3]
    assert fitting(parts, 18, gap=3) == [0, 1, 3]
    assert fitting(parts, 3, gap=3) == [3]


def test_a_turn_shows_the_best_path_until_there_is_an_answer() -> None:
    turn = Turn(Models().request("?", Effort.THINK), Effort.THINK)
    turn.started = True
    for event in numbered([*beginning(), *first_round()]):
        turn.put(event)
    turn.take()
    assert turn.text == "Tom has 3 apples.\n\n"


def test_a_replay_back_and_forth_ends_where_the_run_ended() -> None:
    events = whole_run()
    replay = Replay(events)
    replay.end()
    assert replay.previous_round().everything
    replay.previous_round()
    assert replay.view.nodes[(0,)].state is State.KEPT
    assert (0, 0) not in replay.view.nodes
    replay.seek(0.35)
    assert list(replay.view.nodes) == [(0,)]
    assert not replay.end().everything
    assert replay.view.answered == view_of(events).answered
    assert replay.ended


def test_the_time_of_a_replay_does_not_run_backwards_where_a_run_was_resumed() -> None:
    late = RunFinished(seq=99, at=0.1, stop=Stop.COMPLETE, counters=Counters())
    replay = Replay([*numbered(beginning()), late])
    assert replay.length == pytest.approx(0.2)


def test_an_answer_of_before_is_no_answer_while_the_run_goes_on_and_stays_if_none_is_better() -> (
    None
):
    first = numbered([*beginning(), *first_round(), answered(lineage=(3,))])
    view = view_of(first)
    assert view.nodes[(3,)].state is State.ANSWER
    view.update(RunResumed(nodes=4))
    assert view.answered is None
    assert view.nodes[(3,)].state is State.KEPT
    ending = RunFinished(stop=Stop.COMPLETE, counters=Counters())
    unchanged = view_of([*first, RunResumed(nodes=4), ending])
    assert unchanged.answered == view_of(first).answered
    assert unchanged.nodes[(3,)].state is State.ANSWER
    better = view_of([*first, RunResumed(nodes=4), *numbered(second_round()), answered(), ending])
    assert [n.lineage for n in better.walk() if n.state is State.ANSWER] == [(0, 0)]
    assert better.nodes[(3,)].state is State.KEPT


def test_the_engines_advice_names_settings_and_not_options_inside_the_app() -> None:
    advice = "Use a smaller --n or --context -- or 5--3."
    assert without_options(advice) == "Use a smaller n or context -- or 5--3."


def test_the_time_that_is_shown_never_falls() -> None:
    line = StatusLine(Models())
    turn = Turn(Models().request("?", Effort.THINK), Effort.THINK)
    turn.started = True
    for event in numbered(beginning()):
        turn.put(msgspec.structs.replace(event, at=9.0))
    turn.take()
    line.show(turn, 0)
    line._heard -= 3.0  # as if nothing had been heard for that long
    line.show(turn, 0)
    assert "12 s" in line._said
    turn.stop()
    line.show(turn, 0)
    assert "12.0 s" in line._said
    turn.put(RunFinished(stop=Stop.CANCELLED, counters=Counters(), at=9.5))
    turn.take()
    line.show(turn, 0)
    assert "12.0 s" in line._said


def test_search_goes_round_the_end_in_the_order_of_the_tree() -> None:
    view = view_of(whole_run())
    search = Search()
    search.words = "APPLES"
    found = [(0,), (1,), (2,), (3,)]
    here = None
    for lineage in [*found, found[0]]:
        here = search.next(view, here, 1)
        assert here is not None
        assert here.lineage == lineage
    back = search.next(view, here, -1)
    assert back is not None
    assert back.lineage == (3,)
    search.words = "pears"
    assert search.next(view, None, 1) is None


def test_settings_are_kept_and_damaged_ones_are_the_defaults() -> None:
    save_settings(Settings(theme="sapwood-light", keys={"chat.stop": "ctrl+x"}))
    assert load_settings().theme == "sapwood-light"
    settings_path().write_text("{torn")
    assert load_settings() == Settings()


def test_over_ssh_the_clipboard_is_the_terminals() -> None:
    assert native_tool({"SSH_TTY": "/dev/pts/1", "DISPLAY": ":0"}, "linux") is None


def test_a_tool_that_is_there_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "wl-copy"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert native_tool({"WAYLAND_DISPLAY": "wayland-0"}, "linux") == ["wl-copy"]
    assert native_tool({"DISPLAY": ":0"}, "linux") is None


def test_formulas_are_shown_rendered_and_prices_and_code_as_they_are() -> None:
    text = r"It costs $5 or $10; $x^2 = 4$, `$y^2$`."
    assert as_line(text, raw=False) == "It costs $5 or $10; x² = 4, `$y^2$`."
    assert as_line(text, raw=True) == text


def test_a_formula_that_is_not_known_is_shown_as_code() -> None:
    assert as_markdown(r"so $\unknown{x}$", raw=False) == r"so `$\unknown{x}$`"
    assert as_text(r"so $\unknown{x}$", raw=False) == r"so $\unknown{x}$"


def test_a_rendered_formula_is_no_markdown() -> None:
    assert as_markdown(r"$a * b * c$", raw=False).count("\\*") == 2


def test_control_characters_are_shown_and_not_obeyed() -> None:
    for shown in (as_markdown, as_text, as_line):
        assert "\x1b" not in shown("a\x1b[2Jb", raw=False)


def test_what_is_written_to_descriptor_2_goes_to_the_log_and_back_again(tmp_path: Path) -> None:
    log = tmp_path / "log" / "app.log"
    program = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from app.tui.stderr_guard import stderr_guard\n"
        f"with stderr_guard(Path({str(log)!r})):\n"
        "    os.write(2, b'native')\n"
        "    os.system('echo child >&2')\n"
        "    sys.__stderr__.write('screen')\n"
        "os.write(2, b' after')\n"
    )
    root = Path(__file__).parents[3]
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=root
    )
    assert ran.stderr == "screen after"
    assert log.read_text() == "nativechild\n"


def test_the_app_loads_no_model_code() -> None:
    program = "import sys\nimport app.tui.app\nprint(*sys.modules)"
    root = Path(__file__).parents[3]
    ran = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=root,
        env=os.environ,
    )
    assert {"llama_cpp", "torch", "transformers", "math_verify"}.isdisjoint(ran.stdout.split())
