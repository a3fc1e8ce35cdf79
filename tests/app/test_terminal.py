"""`sapwood` on a terminal of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from engine.protocol import encode
from tests.app.streams import whole_run

if sys.platform == "win32":
    pytest.skip("pseudo-terminals are POSIX", allow_module_level=True)

import fcntl
import pty
import struct
import termios

ROOT = Path(__file__).parents[2]
COLOUR = re.compile(r"\x1b\[[0-9;]*3[0-7]m")


def on_terminal(
    events: Path, *arguments: str, width: int = 80, **environment: str
) -> tuple[int, str, str]:
    """Run it with standard error on a terminal: exit code, standard output, what is drawn."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 20, width, 0, 0))
    inherited = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS", "LINES")}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.app.scripted", str(events), "0.02", *arguments],
        cwd=ROOT,
        env=inherited | {"TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8"} | environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=theirs,
    )
    os.close(theirs)
    drawn = b""
    while True:
        try:
            chunk = os.read(ours, 1 << 16)
        except OSError:  # how Linux says that the other end is closed
            break
        if not chunk:
            break
        drawn += chunk
    os.close(ours)
    out, _ = process.communicate(timeout=20)
    return process.returncode, out.decode(), drawn.decode()


@pytest.fixture
def events(tmp_path: Path) -> Path:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"".join(map(encode, whole_run(text="[red]\x1b]0;x\x07 word " * 9))))
    return path


def test_the_live_tree_is_drawn_and_the_answer_is_data(events: Path) -> None:
    code, out, drawn = on_terminal(events, "solve", "x")
    assert (code, out) == (0, "8\n")
    assert "searching · depth" in drawn
    assert COLOUR.search(drawn)
    assert drawn.count("\x1b[?25l") == drawn.count("\x1b[?25h") == 1
    assert "[red]\\x1b]0;x\\x07 word" in drawn
    assert "\x1b]" not in drawn


def test_no_color_and_forty_columns(events: Path) -> None:
    code, _, drawn = on_terminal(events, "solve", "x", width=40, NO_COLOR="1")
    assert code == 0
    assert not COLOUR.search(drawn)
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", drawn).replace("\r", "\n").split("\n")
    assert max(map(len, lines)) <= 40


def test_a_dumb_terminal_gets_plain_lines(events: Path) -> None:
    _, _, drawn = on_terminal(events, "solve", "x", TERM="dumb")
    assert "round 1: kept 2 of 4" in drawn
    assert "\x1b" not in drawn


def test_quiet_and_json_draw_nothing(events: Path) -> None:
    for how in ("--quiet", "--json"):
        assert on_terminal(events, "solve", "x", how)[2] == ""


def test_a_replay_is_timed_unless_told_otherwise(events: Path) -> None:
    code, out, drawn = on_terminal(events, "replay", "--speed", "100", str(events))
    assert (code, out) == (0, "8\n")
    assert "votes: 8 x2 (1.80)" in drawn


def test_a_batch_has_a_bar(events: Path, tmp_path: Path) -> None:
    (tmp_path / "problems").write_text('{"problem": "a"}\n{"problem": "b"}\n')
    arguments = ("--file", str(tmp_path / "problems"), "--out", str(tmp_path / "out"))
    code, _, drawn = on_terminal(events, "solve", *arguments)
    assert code == 0
    assert "2/2" in drawn
    assert "ETA" in drawn
