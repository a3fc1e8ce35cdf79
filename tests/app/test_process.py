"""`sapwood` as a process: signals, pipes and full disks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest

from engine.protocol import encode
from tests.app.streams import whole_run

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts `sapwood` with a scripted engine that gives an event every `delay` seconds."""
    events = tmp_path / "events.jsonl"
    events.write_bytes(b"".join(map(encode, whole_run())))
    started: list[subprocess.Popen[str]] = []

    def run(
        *arguments: str,
        delay: float = 0.0,
        stdout: int | IO[str] = subprocess.PIPE,
        stderr: int | IO[str] = subprocess.PIPE,
    ) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.app.scripted", str(events), str(delay), *arguments],
            cwd=ROOT,
            env=os.environ | {"PYTHONIOENCODING": "utf-8"},
            text=True,
            encoding="utf-8",
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


def wait_for(process: subprocess.Popen[str], words: str) -> str:
    """Read its narration up to a line with these words."""
    assert process.stderr is not None
    read = ""
    for line in process.stderr:
        read += line
        if words in line:
            return read
    raise AssertionError(f"ended without {words!r}: {read}")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_interrupt_gives_the_best_so_far(start: Start, number: int) -> None:
    process = start("solve", "x", delay=0.05)
    wait_for(process, "loading")
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (4, "8\n")
    assert "Ctrl-C again leaves at once" in err
    assert "To go on: sapwood solve --resume" in err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_second_interrupt_leaves_at_once(start: Start, number: int, code: int) -> None:
    process = start("solve", "x", delay=60)
    wait_for(process, "searching")  # from here on nothing comes that could end the run
    process.send_signal(number)
    wait_for(process, "Stopping")
    begin = time.monotonic()
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (code, "", "")
    assert time.monotonic() - begin < 2


def test_an_interrupted_batch_keeps_what_is_done(start: Start, tmp_path: Path) -> None:
    problems, out = tmp_path / "problems", tmp_path / "out"
    problems.write_text('{"problem": "a"}\n' * 99)
    process = start("solve", "--file", str(problems), "--out", str(out), delay=0.02)
    wait_for(process, "2/99")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 4
    assert "run the same command again" in err
    assert out.read_bytes().count(b"\n") in (2, 3)


def test_a_killed_batch_goes_on(start: Start, tmp_path: Path) -> None:
    problems, out = tmp_path / "problems", tmp_path / "out"
    problems.write_text('{"problem": "a"}\n' * 9)
    command = ("solve", "--file", str(problems), "--out", str(out))
    process = start(*command, delay=0.02)
    wait_for(process, "2/9")
    process.kill()
    process.wait()
    done = out.read_bytes().count(b"\n")
    assert 2 <= done < 9
    process = start(*command)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 0
    assert f"{done} of 9 problems are done already" in err
    assert out.read_bytes().count(b"\n") == 9


@pytest.mark.parametrize("how", [["--json"], []])
def test_a_reader_that_leaves_ends_it_quietly(start: Start, how: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    process = start("solve", "x", *how, stdout=write)
    os.close(write)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 0
    assert "sapwood:" not in err
    assert "Traceback" not in err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_standard_output_on_a_full_disk(start: Start) -> None:
    with Path("/dev/full").open("w") as full:
        process = start("solve", "x", "--quiet", stdout=full)
        _, err = process.communicate(timeout=20)
    assert process.returncode == 6
    assert "sapwood: Standard output could not be written (No space left on device)." in err
    assert err.count("\n") <= 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_narration_on_a_full_disk_costs_no_answer(start: Start) -> None:
    with Path("/dev/full").open("w") as full:
        process = start("solve", "x", stderr=full)
        out, _ = process.communicate(timeout=20)
    assert (process.returncode, out) == (0, "8\n")


def test_an_output_without_unicode_gets_escapes_and_no_error(start: Start, tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_bytes(b"".join(map(encode, whole_run(answer="∑ 8"))))
    process = subprocess.run(
        [sys.executable, "-m", "tests.app.scripted", tmp_path / "events.jsonl", "0", "solve", "x"],
        cwd=ROOT,
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=True,
    )
    assert process.stdout == b"\\u2211 8\n"
    assert process.stderr.isascii()
