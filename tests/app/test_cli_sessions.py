"""`sapwood sessions` and `sapwood export`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.store import Role, Store
from engine.protocol import encode
from tests.app.conftest import Sapwood
from tests.app.streams import whole_run


@pytest.fixture(autouse=True)
def kept(home: Path) -> None:
    """Two sessions, the second with two branches."""
    with Store() as store:
        store.add(store.create().id, Role.USER, "Tom has 3 apples.")
        pears = store.create("Pears").id
        first = store.add(pears, Role.USER, "How many \x1b[31m pears?").id
        store.add(pears, Role.ASSISTANT, "Few.", parent=first)
        store.add(pears, Role.ASSISTANT, "Many.", parent=first)


def test_the_list_has_the_latest_first(sapwood: Sapwood) -> None:
    for arguments in (["sessions"], ["sessions", "list"]):
        ran = sapwood(*arguments)
        assert (ran.code, ran.err) == (0, "")
        heads, *rows = [line.split() for line in ran.out.splitlines()]
        assert heads == ["NO.", "CHANGED", "MESSAGES", "TITLE"]
        assert [(row[0], row[3:]) for row in rows] == [
            ("2", ["3", "Pears"]),
            ("1", ["1", "Tom", "has", "3", "apples."]),
        ]


def test_json_gives_an_object_a_line(sapwood: Sapwood) -> None:
    rows = [json.loads(line) for line in sapwood("sessions", "list", "--json").out.splitlines()]
    assert [(row["id"], row["title"], row["messages"]) for row in rows] == [
        (2, "Pears", 3),
        (1, "Tom has 3 apples.", 1),
    ]
    shown = sapwood("sessions", "show", "2", "--json").out.splitlines()
    assert [json.loads(line)["text"] for line in shown] == ["How many \x1b[31m pears?", "Many."]


def test_search_says_where(sapwood: Sapwood) -> None:
    ran = sapwood("sessions", "search", "pear")
    assert ran.out.splitlines() == ["   2  Pears: How many \\x1b[31m pears?"]
    found = sapwood("sessions", "search", "--json", "apples", "tom").out.splitlines()
    title, message = map(json.loads, found)
    assert (title["session"], title["message"]) == (1, None)
    assert (message["message"], message["excerpt"]) == (1, "Tom has 3 apples.")


def test_a_search_without_a_find_has_its_own_exit_code(sapwood: Sapwood) -> None:
    ran = sapwood("sessions", "search", "nothing")
    assert (ran.code, ran.out, ran.err) == (1, "", "Nothing was found.\n")


def test_show_prints_the_open_branch(sapwood: Sapwood) -> None:
    ran = sapwood("sessions", "show", "2")
    assert ran.code == 0
    assert "How many \\x1b[31m pears?" in ran.out
    assert "Many." in ran.out
    assert "Few." not in ran.out


def test_a_deleted_session_comes_back(sapwood: Sapwood) -> None:
    assert "sessions undo" in sapwood("sessions", "delete", "1", "2").err
    assert sapwood("sessions").out == ""
    assert sapwood("sessions", "list", "--deleted").out.count("\n") == 3
    assert sapwood("sessions", "undo").err == "Session 2 is back, Pears.\n"
    assert sapwood("sessions", "undo", "1").code == 0
    assert sapwood("sessions", "undo").code == 1
    assert sapwood("sessions").out.count("\n") == 3


def test_a_session_can_be_renamed(sapwood: Sapwood) -> None:
    assert sapwood("sessions", "rename", "1", "Apple", "story").code == 0
    assert "Apple story" in sapwood("sessions").out


@pytest.mark.parametrize(
    "arguments",
    [
        *(["show", "9"], ["rename", "9", "x"], ["delete", "9"], ["undo", "9"]),
        *(["show", "x"], ["show", str(1 << 63)], ["what"]),
    ],
)
def test_a_session_there_is_not_is_a_usage_error(sapwood: Sapwood, arguments: list[str]) -> None:
    ran = sapwood("sessions", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.count("\n") == 1


def test_nothing_is_deleted_if_one_of_several_does_not_exist(sapwood: Sapwood) -> None:
    assert sapwood("sessions", "delete", "1", "9").code == 2
    assert sapwood("sessions").out.count("\n") == 3


def test_a_session_is_exported_by_its_number(sapwood: Sapwood) -> None:
    assert sapwood("export", "2").out.startswith("# Pears\n\n*Session 2, begun ")
    assert json.loads(sapwood("export", "2", "--format", "json").out)["session"]["id"] == 2
    assert sapwood("export", "2", "--format", "html").out.startswith("<!doctype html>")


def test_a_name_that_tells_no_format_is_refused(sapwood: Sapwood, tmp_path: Path) -> None:
    out = tmp_path / "x.pdf"
    ran = sapwood("export", "1", "--out", str(out))
    assert ran.code == 2
    assert "Let it end in .md, .markdown, .txt" in ran.err
    assert not out.exists()
    assert sapwood("export", "1", "--out", str(out), "--format", "markdown").code == 0


def test_a_run_is_exported_by_the_path_of_its_log(sapwood: Sapwood, tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    log.write_bytes(b"".join(map(encode, whole_run())))
    assert "**Answer:** 8" in sapwood("export", str(log)).out


def test_the_name_of_the_file_tells_the_format(sapwood: Sapwood, tmp_path: Path) -> None:
    for name, begin in (("a.html", "<!doctype"), ("a.json", "{"), ("a.md", "#"), ("a.txt", "#")):
        out = tmp_path / name
        ran = sapwood("export", "2", "--out", str(out))
        assert (ran.code, ran.out, ran.err) == (0, "", "")
        assert out.read_text(encoding="utf-8").startswith(begin)
    assert len(list(tmp_path.glob("*a.*"))) == 4


def test_a_file_that_is_there_is_written_over_only_by_force(
    sapwood: Sapwood, tmp_path: Path
) -> None:
    out = tmp_path / "a.md"
    out.write_text("mine")
    ran = sapwood("export", "2", "--out", str(out))
    assert ran.code == 2
    assert "add --force" in ran.err
    assert out.read_text() == "mine"
    assert sapwood("export", "2", "--out", str(out), "--force").code == 0
    assert out.read_text(encoding="utf-8").startswith("# Pears")


def test_a_run_log_is_not_written_over_by_its_own_export(sapwood: Sapwood, tmp_path: Path) -> None:
    log = tmp_path / "run.json"
    log.write_bytes(b"".join(map(encode, whole_run())))
    before = log.read_bytes()
    (tmp_path / "link.html").symlink_to(log)
    for out in (log, tmp_path / "link.html"):
        ran = sapwood("export", str(log), "--out", str(out), "--force")
        assert ran.code == 2
        assert "is the run log itself" in ran.err
        assert log.read_bytes() == before


def test_a_file_that_cannot_be_written_is_told(sapwood: Sapwood, tmp_path: Path) -> None:
    ran = sapwood("export", "2", "--out", str(tmp_path / "none" / "a.md"))
    assert ran.code == 6
    assert "could not be written (No such file or directory)" in ran.err


def test_what_is_no_log_is_told(sapwood: Sapwood, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("x")
    for what in (str(tmp_path / "x"), str(tmp_path / "none"), "77"):
        assert sapwood("export", what).code == 2
