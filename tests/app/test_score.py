"""`sapwood score`, on the real engine with the seedling's verifier."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.app.conftest import Sapwood

PROBLEM = (
    "Lily buys 2 bags of 5 flowers each. She gives 3 flowers to Leo. How many flowers does Lily "
    "have now?"
)
RIGHT = (
    "At first there are 2*5=10 stones.\n\nThat leaves 10-3=7 pears.\n\nThe answer is \\boxed{7}."
)
WRONG = RIGHT.replace("7", "8")


def line(**fields: object) -> str:
    return json.dumps(fields) + "\n"


def rows(text: str) -> list[dict[str, object]]:
    return [json.loads(row) for row in text.splitlines()]


def test_each_step_has_a_score_and_the_wrong_one_a_low_one(sapwood: Sapwood) -> None:
    ran = sapwood("score", PROBLEM, WRONG)
    assert ran.code == 0
    first, second, third = ran.out.splitlines()
    assert first.startswith("1  0.9")
    assert second.startswith("2  0.0")
    assert second.endswith("That leaves 10-3=8 pears.")
    assert third.startswith("3  0.0")
    assert "loading seedling verifier (a demonstration" in ran.err


def test_a_blank_line_at_the_end_makes_no_step(sapwood: Sapwood) -> None:
    plain = sapwood("score", PROBLEM, WRONG).out
    assert sapwood("score", PROBLEM, WRONG + "\n\n").out == plain
    assert sapwood("score", PROBLEM, "-", stdin=f"\n\n{WRONG}\r\n\r\n".encode()).out == plain


def test_the_scores_as_json_are_exact_and_whole(sapwood: Sapwood) -> None:
    ran = sapwood("score", PROBLEM, "--json", stdin=RIGHT.encode())
    found = json.loads(ran.out)
    assert found["verifier"] == "seedling"
    assert [step["text"] for step in found["steps"]] == RIGHT.split("\n\n")
    assert all(0.5 < step["score"] <= 1 for step in found["steps"])


def test_a_long_step_is_cut_and_control_characters_are_shown(sapwood: Sapwood) -> None:
    ran = sapwood("score", PROBLEM, "so \x1b[31m " + "10 and " * 60)
    (only,) = ran.out.splitlines()
    assert len(only) <= 100
    assert only.endswith("…")
    assert "\\x1b[31m" in only


def test_a_file_is_scored_line_by_line_and_wrong_lines_are_named(
    sapwood: Sapwood, tmp_path: Path
) -> None:
    path, out = tmp_path / "solutions.jsonl", tmp_path / "scores.jsonl"
    path.write_text(
        line(problem=PROBLEM, solution=RIGHT)
        + "not json\n"
        + line(problem=PROBLEM, solution=" \n\n ")
        + "\n"
        + line(id="w", question=PROBLEM, steps=WRONG.split("\n\n"))
        + line(id="w", problem=PROBLEM, solution=RIGHT)
    )
    ran = sapwood("score", "--file", str(path), "--out", str(out))
    assert ran.code == 2
    for number in (2, 3, 6):
        assert f"line {number}: " in ran.err
    right, wrong = rows(out.read_text())
    assert (right["id"], wrong["id"]) == (1, "w")
    assert wrong["steps"] == WRONG.split("\n\n")
    assert wrong["problem"] == PROBLEM
    assert wrong["verifier"] == "seedling"
    assert isinstance(right["scores"], list)
    assert isinstance(wrong["scores"], list)
    assert min(wrong["scores"]) < 0.1 < 0.5 < min(right["scores"])
    assert "2/2 w: lowest 0.0" in ran.err


def test_a_solution_too_long_is_an_error_of_its_line_alone(
    sapwood: Sapwood, tmp_path: Path
) -> None:
    path = tmp_path / "solutions.jsonl"
    path.write_text(
        line(id="long", problem=PROBLEM, solution="10 + 3 = 13. " * 400)
        + line(id="short", problem=PROBLEM, solution=RIGHT)
    )
    ran = sapwood("score", "--file", str(path), "--context", "256")
    assert ran.code == 2
    long, short = rows(ran.out)
    assert "reads no more than 1,024 tokens" in str(long["error"])
    assert len(short["scores"]) == 3  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ((), 2, "There is no problem"),
        ((PROBLEM, " \n\n "), 2, "solution is empty"),
        ((PROBLEM, RIGHT, "--verifier", "nobody"), 2, "There is no verifier 'nobody'"),
        ((PROBLEM, RIGHT, "--verifier", "/none/x.gguf"), 3, "There is no model file"),
        ((PROBLEM, RIGHT, "--prm-format", "skywork"), 3, "without its head"),
        ((PROBLEM, RIGHT, "--prm-format", "rlhflow"), 3, "not a verifier of the format"),
        ((PROBLEM, RIGHT, "--out", "x"), 2, "--out is for"),
        (("--file", "/none/x.jsonl"), 2, "cannot be read"),
    ],
)
def test_what_cannot_be_scored_is_told_with_its_exit_code(
    sapwood: Sapwood, arguments: tuple[str, ...], code: int, words: str
) -> None:
    ran = sapwood("score", *arguments)
    assert ran.code == code
    assert words in ran.err
    assert ran.out == ""


def test_ctrl_c_keeps_what_is_scored(tmp_path: Path) -> None:
    path, out = tmp_path / "solutions.jsonl", tmp_path / "scores.jsonl"
    path.write_text("".join(line(problem=PROBLEM, solution=RIGHT) for _ in range(2000)))
    process = subprocess.Popen(
        [sys.executable, "-m", "app.cli", "score", "--file", str(path), "--out", str(out)],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ,
    )
    assert process.stderr is not None
    while "3/2000" not in process.stderr.readline():
        pass
    process.send_signal(signal.SIGINT)
    _, words = process.communicate(timeout=60)
    assert process.returncode == 4
    assert "To go on, run the same command again." in words
    done = rows(out.read_text())
    assert 3 <= len(done) < 2000
    assert all(len(row["scores"]) == 3 for row in done)  # type: ignore[arg-type]
