"""Files the client keeps of its own."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from engine.client import memory_kills
from engine.client.memory_kills import count_memory_kills
from engine.client.unsaved import new_log, remove_old_logs
from engine.client.worker_log import WorkerLog
from engine.places import log_dir, runs_dir


def test_one_variable_moves_everything(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert runs_dir() == home / "runs"
    assert log_dir() == home / "log"
    monkeypatch.delenv("SAPWOOD_HOME")
    assert "sapwood" in str(runs_dir())
    assert "sapwood" in str(log_dir())


def test_logs_left_behind_go_after_two_weeks(home: Path) -> None:
    old, new = new_log("old"), new_log("new")
    assert old is not None
    assert new is not None
    (home / "runs" / "mine.jsonl").touch()
    for path in (old, str(home / "runs" / "mine.jsonl")):
        os.utime(path, (0, time.time() - 15 * 24 * 3600))
    remove_old_logs()
    left = sorted(path.name for path in (home / "runs").iterdir())
    assert left == ["mine.jsonl", "unsaved-new.jsonl"]


def test_only_the_last_few_worker_logs_are_kept(home: Path) -> None:
    for _ in range(7):
        WorkerLog()
    assert len(list((home / "log").iterdir())) == 4


def test_of_a_long_worker_log_only_the_end_is_read() -> None:
    log = WorkerLog()
    with log.open() as file:
        file.write(b"said\n" * 10_000)
    assert log.tail().endswith("said\n")
    assert len(log.tail()) < 20_000


def test_memory_kills_are_counted_from_both_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "memory.events").write_text("low 0\noom 5\noom_kill 2\n")
    monkeypatch.setattr(memory_kills, "_control_group", lambda: tmp_path)
    before = count_memory_kills()
    (tmp_path / "memory.events").write_text("low 0\noom 5\noom_kill 3\n")
    assert count_memory_kills() == before + 1
