"""Workers that are lost in the middle of a run."""

from __future__ import annotations

import asyncio
import itertools
import sys
from pathlib import Path

import pytest

from engine.client import LocalEngine, process
from engine.protocol import (
    VERSION,
    AnyEvent,
    Hello,
    NodeOpened,
    RunResumed,
    Stop,
    Trouble,
    Warned,
    WorkerRestarted,
    encode,
)

from .driving import ending, engine, failure, request, solve, tree


def restart(events: list[AnyEvent]) -> WorkerRestarted:
    (event,) = [event for event in events if isinstance(event, WorkerRestarted)]
    return event


@pytest.mark.parametrize("logged", [True, False])
def test_a_killed_worker_is_replaced_and_the_run_comes_out_the_same(
    tmp_path: Path, logged: bool
) -> None:
    undisturbed = solve(request())
    events = solve(request("once kill", tmp_path / "log" if logged else None))
    assert ending(events).stop is Stop.COMPLETE
    assert "SIGKILL" in restart(events).cause
    assert tree(events) == tree(undisturbed)
    assert [event.seq for event in events] == list(range(len(events)))
    (resumed,) = [event for event in events if isinstance(event, RunResumed)]
    assert resumed.nodes == 4


def test_only_what_was_not_finished_is_written_again() -> None:
    events = solve(request("once kill"))
    opened = [event.lineage for event in events if isinstance(event, NodeOpened)]
    assert len(opened) == 13
    assert len(set(opened)) == 12


def test_a_hung_worker_is_replaced() -> None:
    events = solve(request("once hang"), hang_after=2.0)
    assert ending(events).stop is Stop.COMPLETE
    assert "did not get on for 2 s" in restart(events).cause
    assert tree(events) == tree(solve(request()))


def test_a_second_loss_ends_the_run_and_names_its_log(home: Path) -> None:
    events = solve(request("kill"))
    restart(events)
    failed = failure(events)
    (log,) = (home / "runs").iterdir()
    assert failed.trouble is Trouble.ENGINE
    assert "second time" in failed.message
    assert str(log) in failed.advice
    assert "worker-" in failed.advice
    assert [event.seq for event in events] == list(range(len(events)))


def test_a_failed_run_can_be_resumed_later(tmp_path: Path) -> None:
    log = tmp_path / "log"
    first = solve(request("abort", log))
    failure(first)
    # What goes wrong is part of the problem, so the log is made one of a problem without it.
    log.write_bytes(log.read_bytes().replace(b'"problem":"abort"', b'"problem":"fine"'))
    again = solve(request("fine", log, resume=True))
    assert ending(again).stop is Stop.COMPLETE
    assert tree(again) == tree(solve(request()))
    assert again[1:20] == first[1:20]


def test_the_last_words_of_a_crash_are_told() -> None:
    assert "GGML_ASSERT(1 == 2) failed" in failure(solve(request("abort"))).message
    assert "exit code 3; its last words: a reason" in failure(solve(request("exit"))).message


def test_a_memory_kill_is_named_and_never_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    kills = itertools.count()
    monkeypatch.setattr(process, "count_memory_kills", lambda: next(kills))
    events = solve(request("once kill"))
    failed = failure(events)
    assert failed.trouble is Trouble.MEMORY
    assert "ran out of memory" in failed.message
    assert "smaller" in failed.advice
    assert not any(isinstance(event, WorkerRestarted) for event in events)


def test_other_runs_outlive_the_one_that_kills_workers() -> None:
    async def run() -> list[list[AnyEvent]]:
        async def one(problem: str) -> list[AnyEvent]:
            return [event async for event in local.solve(request(problem, rounds=9))]

        async with engine() as local:
            problems = ("kill", "", "once exit", "")
            return await asyncio.gather(*(one(problem) for problem in problems))

    first, *others = asyncio.run(run())
    failure(first)
    for events in others:
        assert ending(events).stop is Stop.COMPLETE


@pytest.mark.skipif(sys.platform == "win32", reason="it has no limit on file sizes")
def test_a_full_disk_ends_the_log_and_not_the_run(tmp_path: Path) -> None:
    events = solve(request("full", tmp_path / "log"))
    assert ending(events).stop is Stop.COMPLETE
    (warning,) = [event for event in events if isinstance(event, Warned)]
    assert warning.code == "log"
    assert "after node" in warning.message
    assert tree(events) == tree(solve(request()))


def test_a_worker_that_cannot_be_started_is_explained() -> None:
    events = solve_with("/no/such/program")
    assert "could not be started" in failure(events).message
    assert "No such file" in failure(events).message or "cannot find" in failure(events).message


def test_an_import_error_in_the_worker_is_told() -> None:
    events = solve_with(sys.executable, "-c", "import no_such_library")
    assert len(events) == 1
    assert "No module named 'no_such_library'" in failure(events).message
    assert failure(events).trouble is Trouble.ENGINE


def test_another_protocol_version_is_refused() -> None:
    hello = encode(Hello(version=VERSION + 1, pid=1))
    program = f"import sys; sys.stdout.buffer.write({hello!r}); sys.stdout.flush(); input()"
    assert "speaks version" in failure(solve_with(sys.executable, "-c", program)).message


def test_a_program_that_is_no_worker_is_refused() -> None:
    program = "print('Welcome!', flush=True); import time; time.sleep(60)"
    assert "protocol" in failure(solve_with(sys.executable, "-c", program)).message


def test_a_log_that_cannot_be_used_fails_the_run_with_advice(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("mine")
    failed = failure(solve(request("", tmp_path / "notes")))
    assert failed.trouble is Trouble.USAGE
    assert failed.advice
    assert failed.seq == 0


def test_where_nothing_can_be_kept_a_lost_run_starts_again(home: Path) -> None:
    (home / "runs").write_text("a file where the directory should be")
    (home / "log").write_text("here too")
    events = solve(request("once kill"))
    assert ending(events).stop is Stop.COMPLETE
    restart(events)
    assert [event.seq for event in events] == list(range(len(events)))


def solve_with(*command: str) -> list[AnyEvent]:
    async def run() -> list[AnyEvent]:
        async with LocalEngine(command=command) as local:
            return [event async for event in local.solve(request())]

    return asyncio.run(run())
