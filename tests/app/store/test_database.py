"""The file survives: kills, second instances, new versions."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from app.errors import CommandError
from app.exit_codes import ExitCode
from app.store import Role, Store
from app.store.database import Database
from app.store.schema import MIGRATIONS

ROOT = Path(__file__).parents[3]

WRITER = """
import sys
from pathlib import Path
from app.store import Role, Store

store = Store(Path(sys.argv[1]))
session = store.create(sys.argv[2]).id
parent = None
for number in range(int(sys.argv[3])):
    parent = store.add(session, Role.USER, f"message {number} " + "x" * 5000, parent=parent).id
    store.update(parent, text=f"{sys.argv[2]} {number}")
    print(number, flush=True)
"""


def writer(path: Path, title: str, times: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), title, str(times)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_nothing_that_was_saved_is_lost_when_the_process_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    for title in ("first", "second"):
        process = writer(path, title, 100_000)
        assert process.stdout is not None
        told = [int(process.stdout.readline()) for _ in range(8)]
        process.kill()
        told += [int(line) for line in process.stdout.read().split()]
        process.wait()
        with Store(path) as store:
            session = store.sessions()[0]
            texts = [message.text for message in store.path(session.head)]
        assert session.title == title
        assert texts[: len(told)] == [f"{title} {number}" for number in told]
        assert len(texts) <= len(told) + 1
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_instances_write_side_by_side(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    processes = [writer(path, title, 15) for title in "ab"]
    assert [process.wait(timeout=60) for process in processes] == [0, 0]
    with Store(path) as store:
        for session in store.sessions():
            texts = [message.text for message in store.path(session.head)]
            assert texts == [f"{session.title} {number}" for number in range(15)]
        assert len(store.sessions()) == 2
        assert len(store.search("13")) == 2


NEXT = (*MIGRATIONS, ("ALTER TABLE session ADD COLUMN colour TEXT NOT NULL DEFAULT 'green'",))


def test_a_new_version_of_the_file_keeps_a_copy_of_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    with Store(path) as store:
        store.add(store.create("kept").id, Role.USER, "text")
        with closing(Database(path, NEXT)) as database:  # while the old one is still open
            assert database.rows("SELECT title, colour FROM session")[0][:] == ("kept", "green")
    with Store(tmp_path / "sessions.db.version-1") as copy:
        assert copy.search("text")[0].session.title == "kept"


def test_a_new_version_that_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    Store(path).close()
    with pytest.raises(CommandError, match="no such table"):
        Database(path, (*MIGRATIONS, ("DROP TABLE message", "DROP TABLE missing")))
    with Store(path) as store:
        assert store.messages(store.create().id) == []


def test_a_file_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    Database(path, NEXT).close()
    before = path.read_bytes()
    with pytest.raises(CommandError, match="newer version") as failure:
        Store(path)
    assert failure.value.code is ExitCode.STORAGE
    assert path.read_bytes() == before


def test_a_file_that_is_none_of_ours_is_told_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    path.write_bytes(b"something else " * 1000)
    with pytest.raises(CommandError, match=r"cannot be used.*not a database"):
        Store(path)
    assert path.read_bytes() == b"something else " * 1000


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CommandError, match="cannot be used"):
        Store(tmp_path / "file" / "sessions.db")
