"""Two terminals on one machine: the second sees what the first has taken, and plans without it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.memory.sizes import MIB
from tests.e2e.conftest import STORY, Sapwood


@pytest.fixture
def first(tmp_path: Path) -> Iterator[int]:
    """A run that goes on for long; the process that holds its memory."""
    home = tmp_path / "home"
    run = subprocess.Popen(
        [sys.executable, "-m", "app.cli", "solve", "--generator", "smollm2-135m-instruct",
         "--policy", "majority", "--n", "8", "--budget", "4G", STORY],
        cwd=Path(__file__).parents[2],
        env=os.environ | {"SAPWOOD_HOME": str(home)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield holder(home / "promises.json", run)
    finally:
        run.kill()
        run.wait()


def holder(promises: Path, run: subprocess.Popen[bytes]) -> int:
    until = time.monotonic() + 120
    while time.monotonic() < until and run.poll() is None:
        if promises.is_file() and (held := json.loads(promises.read_bytes())):
            return held[0]["pid"]
        time.sleep(0.1)
    raise AssertionError("the first run never took anything")


def test_the_second_sees_who_holds_what_and_is_told_when_its_budget_is_too_small(
    sapwood: Sapwood, first: int
) -> None:
    seen = sapwood("plan", "--json")
    note = json.loads(seen.stdout)["note"]
    assert f"process {first} holds" in note
    refused = sapwood("solve", "--budget", str(60 * MIB), STORY)
    assert refused.returncode == 5
    assert "60 MiB may be used" in refused.stderr
    assert "--budget" in refused.stderr


def test_the_second_works_beside_the_first(sapwood: Sapwood, first: int) -> None:
    ran = sapwood("solve", "--quiet", "--n", "2", "--width", "2", "--budget", "1G", STORY)
    assert ran.returncode in (0, 1), ran.stderr
