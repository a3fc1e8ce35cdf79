"""The program as a user runs it: real processes, real weights."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Sapwood = Callable[..., subprocess.CompletedProcess[str]]

STORY = "Tom has 3 bags with 4 apples each. Tom finds 5 apples. How many apples does Tom have now?"


@pytest.fixture
def sapwood(tmp_path: Path) -> Sapwood:
    """Runs `sapwood` with its data in a folder of the test's own."""

    def run(*arguments: str | Path, **options) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "app.cli", *map(str, arguments)],
            capture_output=True,
            text=True,
            encoding="utf-8",
            cwd=Path(__file__).parents[2],
            env=os.environ | {"SAPWOOD_HOME": str(tmp_path / "home")},
            stdin=subprocess.DEVNULL,
            timeout=200,
            **options,
        )

    return run
