"""Running `sapwood` in this process, with a scripted engine, files of its own and no terminal."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

import app.batch
import app.solve
from app import cli
from engine.protocol import AnyEvent, SolveRequest
from tests.app.scripted import ScriptedEngine
from tests.app.streams import whole_run


@dataclass
class Ran:
    """What a call gave."""

    code: int
    out: str
    err: str
    requests: list[SolveRequest]


Sapwood = Callable[..., Ran]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place for run logs that is not the user's."""
    home = tmp_path / "home"
    monkeypatch.setenv("SAPWOOD_HOME", str(home))
    return home


@pytest.fixture
def sapwood(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Sapwood:
    """Runs the command line; the n-th solved problem gets the n-th script."""

    def run(
        *arguments: str,
        scripts: Sequence[Sequence[AnyEvent]] | None = None,
        stdin: bytes = b"",
    ) -> Ran:
        engine = ScriptedEngine(scripts or [whole_run()])
        monkeypatch.setattr(app.solve, "LocalEngine", engine)
        monkeypatch.setattr(app.batch, "LocalEngine", engine)
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = cli.run(list(arguments))
        out, err = capsys.readouterr()
        return Ran(code, out, err, engine.requests)

    return run
