"""The command line on the engine itself, with the models that come with it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.protocol import Answered, RunFinished, RunStarted, Stop, decode_event

STORY = (
    "Tom has 14 apples. He finds 5 more. Then he gives 3 to his sister. "
    "How many apples does Tom have now?"
)
SEVERAL = ("--n", "4", "--width", "2")
LONG = ("--policy", "majority", "--n", "64", STORY)
"""Seconds of work, so that there is time to interrupt it."""

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(home: Path) -> Iterator[Start]:
    started: list[subprocess.Popen[str]] = []

    def run(*arguments: str, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "app.cli", *arguments],
            cwd=Path(__file__).parents[2],
            env=os.environ | {"PYTHONIOENCODING": "utf-8"},
            text=True,
            encoding="utf-8",
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


def ended(process: subprocess.Popen[str], stdin: str | None = None) -> tuple[int, str, str]:
    out, err = process.communicate(stdin, timeout=120)
    return process.returncode, out, err


def wait_for(process: subprocess.Popen[str], words: str) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if words in line:
            return
    raise AssertionError(f"it ended without saying {words!r}")


def test_a_story_gets_an_answer_and_the_log_replays_and_resumes(
    start: Start, tmp_path: Path
) -> None:
    log = tmp_path / "run.jsonl"
    code, out, err = ended(start("solve", *SEVERAL, "--trace", str(log), STORY))
    assert code == 0, err
    assert out.strip().isdigit()
    assert "demonstration model for simple arithmetic stories" in err
    assert ended(start("replay", str(log)))[:2] == (0, out)
    assert "├─" in ended(start("replay", "--text", str(log)))[1]
    code, again, err = ended(start("solve", "--quiet", "--resume", str(log)))
    assert (code, again, err) == (0, out, "")


def test_json_is_the_log_line_by_line(start: Start, tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    code, out, err = ended(start("solve", *SEVERAL, "--json", "--trace", str(log), STORY))
    assert (code, err) == (0, "")
    assert out == log.read_text("utf-8")
    events = [decode_event(line.encode()) for line in out.splitlines()]
    assert isinstance(events[0], RunStarted)
    assert isinstance(events[-1], RunFinished)
    assert [event.seq for event in events] == list(range(len(events)))


def test_the_problem_from_standard_input(start: Start) -> None:
    code, out, _ = ended(start("solve", "--policy", "greedy", stdin=subprocess.PIPE), STORY)
    assert code == 0
    assert out.strip()


def test_a_time_limit_is_kept_and_the_run_goes_on_from_its_log(
    start: Start, tmp_path: Path
) -> None:
    log = tmp_path / "run.jsonl"
    limited = start("solve", "--time-limit", "0.01", "--trace", str(log), *SEVERAL, STORY)
    code, _, err = ended(limited)
    assert code == 4
    assert f"sapwood solve --resume {log}" in err
    code, out, err = ended(start("solve", "--resume", str(log)))
    assert code == 0, err
    straight = ended(start("solve", "--quiet", *SEVERAL, STORY))
    assert out == straight[1]


@posix
@pytest.mark.parametrize("phase", ["loading", "searching"])
def test_an_interrupt_gives_the_best_so_far(start: Start, tmp_path: Path, phase: str) -> None:
    log = tmp_path / "run.jsonl"
    process = start("solve", "--trace", str(log), *LONG)
    wait_for(process, phase)
    process.send_signal(signal.SIGINT)
    code, out, err = ended(process)
    assert code == 4, err
    last = decode_event(log.read_bytes().splitlines()[-1])
    assert isinstance(last, RunFinished)
    assert last.stop is Stop.CANCELLED
    answers = [
        event.answer
        for event in map(decode_event, log.read_bytes().splitlines())
        if isinstance(event, Answered)
    ]
    assert out == "".join(f"{answer}\n" for answer in answers[-1:])


@posix
def test_the_second_interrupt_leaves_the_log_and_no_process(start: Start, tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    process = start("solve", "--trace", str(log), *LONG)
    wait_for(process, "searching")
    process.send_signal(signal.SIGSTOP)  # so that the second is there before the first is answered
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGCONT)
    code, _, _ = ended(process)
    assert code in (130, 143)
    assert isinstance(decode_event(log.read_bytes().splitlines()[0]), RunStarted)
    code, out, err = ended(start("solve", "--quiet", "--resume", str(log)))
    assert code == 0, err
    assert out.strip()


def test_a_batch_is_judged_by_the_engine_and_goes_on_after_a_kill(
    start: Start, tmp_path: Path
) -> None:
    problems, out = tmp_path / "problems", tmp_path / "out"
    lines = [{"id": i, "problem": STORY, "answer": answer} for i, answer in enumerate("xyz")]
    problems.write_text("".join(json.dumps(line) + "\n" for line in lines))
    command = ("solve", "--policy", "greedy", "--file", str(problems), "--out", str(out))
    process = start(*command)
    wait_for(process, "1/3")
    process.kill()
    process.wait()
    code, said, err = ended(start(*command))
    assert code == 0, err
    results = [json.loads(line) for line in out.read_bytes().splitlines()]
    assert [result["id"] for result in results] == [0, 1, 2]
    assert [result["correct"] for result in results] == [False] * 3
    assert "0 of 3 correct" in said


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--generator", "no-such-model"], (2, 3), "no-such-model"),
        (["--generator", "/no/such/file.gguf"], (2, 3), "/no/such/file.gguf"),
        (["--generator", "seedling", "--n", "2", "--width", "4"], (2,), "width"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    start: Start, options: list[str], code: tuple[int, ...], words: str
) -> None:
    ran = ended(start("solve", "--quiet", *options, STORY))
    assert ran[0] in code
    assert ran[1] == ""
    assert ran[2].count("\n") == 1
    assert ran[2].startswith("sapwood: ")
    assert words in ran[2]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_log_on_a_full_disk_costs_the_log_and_not_the_answer(start: Start) -> None:
    code, out, err = ended(start("solve", *SEVERAL, "--trace", "/dev/full", STORY))
    assert code == 6
    assert out.strip().isdigit()
    assert "warning: The run log stopped" in err


def test_a_model_that_is_not_here_is_offered_with_the_command_that_fetches_it(
    start: Start,
) -> None:
    asked = ("solve", "--generator", "qwen3-0.6b", "--policy", "greedy", STORY)
    code, out, err = ended(start(*asked))
    assert (code, out) == (3, "")
    assert err.endswith("Download it with: sapwood models pull qwen3-0.6b\n")
