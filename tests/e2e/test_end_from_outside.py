"""The app when its process is asked to end by a signal."""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from pathlib import Path

import pytest

pty = pytest.importorskip("pty", reason="there are no such terminals on Windows")

_ENTERED, _LEFT = b"\x1b[?1049h", b"\x1b[?1049l"
_LIMIT = 60.0
"""Seconds that anything may take on a busy machine."""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_the_terminal_is_given_back_as_it_was(sapwood_home: Path, number: signal.Signals) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color", SAPWOOD_HOME=str(sapwood_home))
        os.execv(sys.executable, [sys.executable, "-m", "app.cli"])
    written = _read_until(terminal, _ENTERED, b"")
    written = _read_until(terminal, b"Sapwood", written)
    os.kill(pid, number)
    assert _LEFT in _read_until(terminal, _LEFT, b"")
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 0


def _read_until(terminal: int, wanted: bytes, written: bytes) -> bytes:
    end = time.monotonic() + _LIMIT
    while wanted not in written and time.monotonic() < end:
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                written += os.read(terminal, 1 << 16)
            except OSError:  # the other end is closed
                break
    assert wanted in written
    return written
