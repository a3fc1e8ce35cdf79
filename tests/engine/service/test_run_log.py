"""What a run writes down, and what it does when it cannot."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.errors import EngineError
from engine.models.stop import StopSignal
from engine.protocol import (
    AnyEvent,
    Counters,
    NodeOpened,
    RunFinished,
    RunStarted,
    SolveRequest,
    StepFinished,
    Stop,
    Trouble,
    Warned,
)
from engine.runlog import read_run
from engine.service.run import Run, open_run
from engine.service.runlog import RunLog, open_log

begun: list[Run] = []
NODE = StepFinished(lineage=(0,), text="a\n\n", tokens=(1,), ending="step")
END = RunFinished(stop=Stop.COMPLETE, counters=Counters())


@pytest.fixture(autouse=True)
def close_runs() -> Iterator[None]:
    yield
    while begun:
        begun.pop().close()


def begin(path: Path, *, resume: bool = False, problem: str = "p") -> tuple[Run, list[AnyEvent]]:
    request = SolveRequest(problem=problem, log=str(path), resume=resume)
    sent: list[AnyEvent] = []
    run = open_run("r", request, sent.append, stop=StopSignal(), beat=lambda: None)
    begun.append(run)
    run.start()
    return run, sent


def test_the_log_holds_exactly_what_was_sent(tmp_path: Path) -> None:
    run, sent = begin(tmp_path / "log")
    run.emit(NODE)
    run.emit(END)
    assert isinstance(sent[0], RunStarted)
    assert list(read_run(tmp_path / "log")) == sent


def test_the_log_is_on_file_before_the_client_is_told(tmp_path: Path) -> None:
    path = tmp_path / "log"
    seen: list[list[AnyEvent]] = []
    request = SolveRequest(problem="p", log=str(path))
    run = open_run(
        "r",
        request,
        lambda event: seen.append([*read_run(path)]),
        stop=StopSignal(),
        beat=lambda: None,
    )
    begun.append(run)
    run.start()
    run.emit(NODE)
    assert [len(events) for events in seen] == [1, 2]


def test_an_existing_log_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("something of the user's")
    with pytest.raises(EngineError, match="already something") as caught:
        begin(path)
    assert caught.value.trouble is Trouble.USAGE
    assert path.read_text() == "something of the user's"


@pytest.mark.parametrize("place", ["missing/log", "."])
def test_a_log_that_cannot_be_opened_is_a_matter_of_storage(tmp_path: Path, place: str) -> None:
    with pytest.raises(EngineError) as caught:
        begin(tmp_path / place)
    assert caught.value.trouble is Trouble.STORAGE


def test_a_log_in_use_is_refused_to_a_second_run(tmp_path: Path) -> None:
    run, _ = begin(tmp_path / "log")
    with pytest.raises(EngineError, match="in use"):
        begin(tmp_path / "log", resume=True)
    run.close()
    begin(tmp_path / "log", resume=True)


def test_a_full_disk_stops_the_log_but_not_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log"
    run, sent = begin(path)
    run.emit(NODE)
    before = list(sent)

    def full(self: RunLog, lines: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(RunLog, "write", full)
    run.emit(NodeOpened(lineage=(1,)))
    run.emit(END)
    warning, *rest = sent[len(before) :]
    assert isinstance(warning, Warned)
    assert "after node 0: No space left" in warning.message
    assert [type(event) for event in rest] == [NodeOpened, RunFinished]
    assert [event.seq for event in sent] == list(range(len(sent)))
    assert list(read_run(path)) == before


def test_a_failed_write_leaves_no_torn_line(tmp_path: Path) -> None:
    class Full:
        """A file that takes half a line and then has no room."""

        def __init__(self, file) -> None:
            self._file = file
            self._taken = False

        def write(self, lines: bytes) -> int:
            if self._taken:
                raise OSError(errno.ENOSPC, "full")
            self._taken = True
            return self._file.write(lines[:5])

        def __getattr__(self, name: str):
            return getattr(self._file, name)

    log = open_log(str(tmp_path / "log"), resume=False)
    log.write(b"whole line\n")
    log._file = Full(log._file)  # type: ignore[assignment]
    with pytest.raises(OSError, match="full"):
        log.write(b"second line\n")
    log.close()
    assert (tmp_path / "log").read_bytes() == b"whole line\n"


def test_a_failed_sync_is_noticed_at_the_next_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(descriptor: int) -> None:
        raise OSError(errno.EIO, "broken disk")

    monkeypatch.setattr(os, "fsync", broken)
    run, sent = begin(tmp_path / "log")
    run.emit(NODE)
    run.emit(END)
    warnings = [event for event in sent if isinstance(event, Warned)]
    assert ["broken disk" in warning.message for warning in warnings] == [True]
    assert isinstance(sent[-1], RunFinished)
    assert [event.seq for event in sent] == list(range(len(sent)))
