from pathlib import Path

import pytest

from engine.protocol import decode_event, encode
from tests.app.conftest import Sapwood
from tests.app.streams import beginning, first_round, numbered, whole_run


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "run.jsonl"
    path.write_bytes(b"".join(map(encode, whole_run())))
    return path


def test_a_replay_says_what_the_run_said(sapwood: Sapwood, log: Path) -> None:
    original = sapwood("solve", "x")
    again = sapwood("replay", str(log))
    assert (again.code, again.out, again.err) == (0, original.out, original.err)


def test_json_gives_the_events(sapwood: Sapwood, log: Path) -> None:
    ran = sapwood("replay", "--json", str(log))
    assert [decode_event(line.encode()) for line in ran.out.splitlines()] == whole_run()


def test_text_gives_the_whole_tree(sapwood: Sapwood, log: Path) -> None:
    ran = sapwood("replay", "--text", str(log))
    assert ran.out.splitlines() == [
        "Tom has 3 apples and finds 5. How many?",
        "├─ ● ▰▰▰▰▱ 0.90 · Tom has 3 apples.",
        "│ ├─ ★ ▰▰▰▰▰ 0.95 · 3 + 5 = 8, so \\boxed{8}",
        "│ └─ ✕ ▰▰▱▱▱ 0.30 · 3 + 5 = 9, so \\boxed{9} [ranked below 2 others]",
        "├─ ✕ ▰▰▱▱▱ 0.40 · Tom has 5 apples. [ranked below 2 others]",
        "├─ ✕ ▰▱▱▱▱ 0.20 · Tom has 2 apples. [ranked below 2 others]",
        "└─ ● ▰▰▰▰▱ 0.70 · Tom finds 5 apples.",
        "  └─ ☆ ▰▰▰▰▱ 0.85 · 5 + 3 = 8, so \\boxed{8}",
    ]


def test_an_interrupted_run_is_shown_as_far_as_it_came(sapwood: Sapwood, log: Path) -> None:
    torn = b"".join(map(encode, numbered([*beginning(), *first_round()])))[:-20]
    log.write_bytes(torn)
    ran = sapwood("replay", str(log))
    assert (ran.code, ran.out) == (0, "")
    assert f"To go on: sapwood solve --resume {log}" in ran.err
    assert "● ▰▰▰▰▱ 0.90 · Tom has 3" in sapwood("replay", "--text", str(log)).out


def test_damage_in_the_middle_is_told_after_what_comes_before(sapwood: Sapwood, log: Path) -> None:
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join([*lines[:5], b"damage\n", *lines[6:]]))
    ran = sapwood("replay", "--json", str(log))
    assert ran.code == 2
    assert len(ran.out.splitlines()) == 5
    assert "Line 6" in ran.err
    ran = sapwood("replay", "--text", str(log))
    assert ran.code == 2
    assert ran.out.startswith("Tom has 3 apples and finds 5. How many?\n")
    assert "Line 6" in ran.err
