"""`sapwood models convert`: files on standard output, words on standard error, right exit codes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.app.conftest import Sapwood
from tests.engine.conftest import checkpoint

if TYPE_CHECKING:
    from tests.engine.checkpoints import Family

__all__ = ["checkpoint"]
Checkpoints = Callable[["Family"], Path]


def test_what_was_made_is_told(sapwood: Sapwood, checkpoint: Checkpoints, tmp_path: Path) -> None:
    out = tmp_path / "prm.gguf"
    folder = checkpoint("math-shepherd")
    arguments = ("models", "convert", str(folder), "--format", "math-shepherd", "--out", str(out))
    ran = sapwood(*arguments, "--json")
    assert ran.code == 0
    assert json.loads(ran.out) == {
        "body": str(out),
        "bytes": out.stat().st_size,
        "head": None,
        "format": "math-shepherd",
    }
    assert "writing 100%" in ran.err
    again = sapwood(*arguments)
    assert again.code == 2
    assert "is there already" in again.err


def test_what_cannot_be_converted_has_its_own_exit_code(sapwood: Sapwood, tmp_path: Path) -> None:
    ran = sapwood("models", "convert", str(tmp_path))
    assert ran.code == 3
    assert "is no checkpoint: there is no config.json in it" in ran.err
    assert ran.out == ""
    assert sapwood("models", "convert", str(tmp_path), "--type", "q1").code == 2


@pytest.mark.parametrize("pause", [None, 0.001])
def test_ctrl_c_leaves_nothing_behind(
    checkpoint: Checkpoints, tmp_path: Path, pause: float | None
) -> None:
    out = tmp_path / "out" / "prm.gguf"
    arguments = (sys.executable, "-m", "app.cli", "models", "convert")
    process = subprocess.Popen(
        [*arguments, str(checkpoint("math-shepherd")), "--type", "q4_k_m", "--out", str(out)],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    process.stderr.readline()
    process.send_signal(signal.SIGINT)
    if pause is not None:  # another one comes while things are put away
        time.sleep(pause)
        process.send_signal(signal.SIGINT)
    _, words = process.communicate(timeout=60)
    if pause is None or process.returncode == 4:
        assert "Stopped. Nothing was written." in words
    assert process.returncode == 4 or (pause is not None and process.returncode == 130)
    assert list(out.parent.iterdir()) == []
