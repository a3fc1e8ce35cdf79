from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Everything the engine keeps goes into the test's own directory."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("SAPWOOD_HOME", str(home))
    return home
