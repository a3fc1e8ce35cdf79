"""The app as `textual serve` runs it: no terminal, its picture in packets on standard output."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread

_LIMIT = 120.0


class Browser:
    """The other side of the pipes."""

    def __init__(self, home: Path) -> None:
        served = {
            "SAPWOOD_HOME": str(home),
            "TEXTUAL_DRIVER": "textual.drivers.web_driver:WebDriver",
            "COLUMNS": "100",
            "ROWS": "30",
        }
        self._app = subprocess.Popen(
            [sys.executable, "-m", "app.cli"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=Path(__file__).parents[2],
            env=os.environ | served,
        )
        self._drawn = b""
        Thread(target=self._read, daemon=True).start()

    def press(self, key: bytes) -> None:
        self._send(b"D", key)

    def leave(self) -> int:
        """Close the page; gives the exit code."""
        self._send(b"M", json.dumps({"type": "quit"}).encode())
        return self._app.wait(_LIMIT)

    def wait_for(self, pattern: bytes) -> None:
        end = time.monotonic() + _LIMIT
        while re.search(pattern, self._drawn) is None:
            assert time.monotonic() < end, self._drawn[-2000:]
            time.sleep(0.05)

    def _send(self, kind: bytes, data: bytes) -> None:
        assert self._app.stdin is not None
        self._app.stdin.write(kind + len(data).to_bytes(4, "big") + data)
        self._app.stdin.flush()

    def _read(self) -> None:
        assert self._app.stdout is not None
        while chunk := os.read(self._app.stdout.fileno(), 1 << 16):
            self._drawn += chunk


def test_the_app_solves_a_problem_in_a_browser(tmp_path: Path) -> None:
    browser = Browser(tmp_path / "home")
    browser.wait_for(rb"Enter solves it")
    browser.press(b"\r")
    browser.wait_for(rb"score 0\.\d\d")
    assert browser.leave() == 0
