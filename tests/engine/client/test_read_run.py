"""Reading logs for replay."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.client import read_run
from engine.errors import EngineError
from engine.protocol import (
    VERSION,
    AnyEvent,
    NodeOpened,
    RunStarted,
    SolveRequest,
    Trouble,
    encode,
)

EVENTS: list[AnyEvent] = [
    RunStarted(seq=0, run="r", request=SolveRequest(problem="p")),
    NodeOpened(seq=1, lineage=(0,)),
    NodeOpened(seq=2, lineage=(1,)),
]
LINES = [encode(event) for event in EVENTS]


@pytest.mark.parametrize("tail", [b"", b"{", LINES[1][:-1], b"\0\0\0\0", b'{"type":"later"}\n'])
def test_a_torn_last_line_is_left_out(tmp_path: Path, tail: bytes) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"".join(LINES) + tail)
    assert list(read_run(path)) == EVENTS


def test_brackets_without_end_are_damage_like_any_other(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(LINES[0] + b'{"type":' + b"[" * 100_000 + b"\n" + LINES[2])
    with pytest.raises(EngineError, match=r"Line 2 of the run log .* is damaged"):
        list(read_run(path))


def test_damage_in_the_middle_is_told_after_what_precedes_it(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(LINES[0] + b"\xff\xfe\n" + LINES[2])
    events = read_run(str(path))
    assert next(events) == EVENTS[0]
    with pytest.raises(EngineError, match="Line 2"):
        next(events)


@pytest.mark.parametrize("content", [b"", b"text", b"text\n", b"{}\n", LINES[1], LINES[0][:20]])
def test_a_file_that_is_no_run_log_is_refused_at_once(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "log"
    path.write_bytes(content)
    with pytest.raises(EngineError, match="not a run log") as caught:
        read_run(path)
    assert caught.value.trouble is Trouble.USAGE


def test_a_log_of_another_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log"
    first = RunStarted(run="r", request=SolveRequest(problem="p"), version=VERSION + 1)
    path.write_bytes(encode(first))
    with pytest.raises(EngineError, match="version"):
        read_run(path)


def test_a_missing_log_is_told_plainly(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="No such file"):
        read_run(tmp_path / "none")
