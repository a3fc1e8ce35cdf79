"""The app as it is on a terminal: `sapwood` itself in tmux, with keys sent and the screen read."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.e2e.conftest import STORY

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")

_ROOT = Path(__file__).parents[2]
_LIMIT = 90.0
"""Seconds that anything may take on a busy machine."""
_ANSWER = "★ [▰▱]"
"""The row of the tree that ends the answer."""


class Terminal:
    """A terminal of its own, in which programs run."""

    def __init__(self, home: Path) -> None:
        self._tmux = ["tmux", "-L", f"sapwood-{os.getpid()}-{home.parent.name}", "-f", os.devnull]
        environment = {"SAPWOOD_HOME": str(home), "PYTHONPATH": str(_ROOT), "LC_ALL": "C.UTF-8"}
        settings = [word for pair in environment.items() for word in ("-e", "=".join(pair))]
        self._do("new-session", "-d", "-x", "120", "-y", "40", *settings, "sh")

    def close(self) -> None:
        self._do("kill-server")

    def run(self, *command: str) -> None:
        self._do("send-keys", "-l", shlex.join(command))
        self.press("Enter")

    def press(self, *keys: str) -> None:
        self._do("send-keys", *keys)

    def type(self, text: str) -> None:
        self._do("send-keys", "-l", text)

    def screen(self) -> str:
        return self._do("capture-pane", "-p").rstrip()

    def wait_for(self, pattern: str, *, gone: bool = False) -> str:
        """Wait until the screen shows it, or no more."""
        end = time.monotonic() + _LIMIT
        while bool(re.search(pattern, screen := self.screen())) is gone:
            if time.monotonic() > end:
                raise AssertionError(f"{pattern!r}, gone={gone}, did not come true:\n{screen}")
            time.sleep(0.05)
        return screen

    @contextmanager
    def engine_asleep(self) -> Iterator[None]:
        """Within the block the engine's process does nothing, so no run can come to its end."""
        shell = psutil.Process(int(self._do("display-message", "-p", "#{pane_pid}")))
        below = shell.children(recursive=True)
        (engine,) = (process for process in below if "engine.service" in process.cmdline())
        engine.suspend()
        try:
            yield
        finally:
            engine.resume()

    def _do(self, *command: str) -> str:
        ran = subprocess.run(
            [*self._tmux, *command], capture_output=True, text=True, encoding="utf-8", check=True
        )
        return ran.stdout


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    terminal = Terminal(tmp_path / "home")
    yield terminal
    terminal.close()


def start(terminal: Terminal) -> None:
    # A size in the environment would be believed more than the terminal.
    terminal.run("env", "-u", "COLUMNS", "-u", "LINES", sys.executable, "-m", "app.cli")


def test_a_first_day_with_the_app(terminal: Terminal) -> None:
    start(terminal)
    terminal.wait_for("Enter solves it")
    terminal.press("Enter")
    terminal.wait_for("done in")
    terminal.wait_for("answer .+ score")
    # Fold the step above the answer and open it again.
    terminal.press("C-t")
    terminal.wait_for("b Best path")
    terminal.press("b")
    terminal.wait_for("ends the chosen solution")
    terminal.wait_for(_ANSWER)
    terminal.press("Left", "Left")
    terminal.wait_for(r"\[\+\d+\]")
    terminal.wait_for(_ANSWER, gone=True)
    terminal.press("Right")
    terminal.wait_for(_ANSWER)
    # Stop a run that lasts; what there is stays.
    terminal.press("Escape")
    terminal.wait_for("b Best path", gone=True)
    terminal.press("BTab")
    terminal.wait_for(r"\[deep\]")
    with terminal.engine_asleep():
        terminal.type(STORY)
        terminal.press("Enter")
        terminal.wait_for("deep · working")
        terminal.press("Escape")
        terminal.wait_for("deep · stopped; what was written stays")
    # Leave, come back, and find the conversation.
    terminal.press("C-q")
    terminal.wait_for(r"[$#]$")
    terminal.run("clear")
    start(terminal)
    terminal.wait_for("ready")
    terminal.press("C-o")
    terminal.wait_for("Search all conversations")
    terminal.press("Down", "Enter")
    assert STORY[:20] in terminal.wait_for("deep · stopped")
    terminal.press("C-q")
    terminal.wait_for(r"[$#]$")
