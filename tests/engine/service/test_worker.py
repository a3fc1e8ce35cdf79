"""The worker process, spoken to over its pipes as a client would."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from engine.protocol import (
    VERSION,
    AnyEvent,
    Cancel,
    Hello,
    Pulse,
    Report,
    RunFailed,
    RunFinished,
    Search,
    Shutdown,
    Solve,
    SolveRequest,
    Stop,
    Trouble,
    decode_message,
    encode,
)
from engine.protocol.messages import Message

SCRIPT = Path(__file__).with_name("scripted_worker.py")


class Worker:
    """A process with the scripted solver; what it prints goes to `output`."""

    def __init__(self, output: Path) -> None:
        with output.open("wb") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, str(SCRIPT)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
            )

    def send(self, message: Message) -> None:
        self.stdin.write(encode(message))
        self.stdin.flush()

    def messages(self) -> Iterator[Message]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            yield decode_message(line)

    def solve(self, run: str, problem: str, log: Path | None = None) -> None:
        search = Search(n=4, width=2, max_steps=3)
        request = SolveRequest(problem=problem, search=search, log=str(log) if log else None)
        self.send(Solve(run, request))

    def events(self, run: str) -> list[AnyEvent]:
        """All events of `run` from here to its last."""
        events: list[AnyEvent] = []
        for message in self.messages():
            if isinstance(message, Report) and message.run == run:
                events.append(message.event)
                if isinstance(message.event, RunFinished | RunFailed):
                    break
        return events

    def failure(self, run: str) -> RunFailed:
        last = self.events(run)[-1]
        assert isinstance(last, RunFailed)
        return last

    @property
    def stdin(self) -> IO[bytes]:
        assert self.process.stdin is not None
        return self.process.stdin


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Worker]:
    worker = Worker(tmp_path / "output")
    yield worker
    worker.process.kill()
    worker.process.wait()
    worker.stdin.close()
    assert worker.process.stdout is not None
    worker.process.stdout.close()


def test_it_says_hello_then_pulses(worker: Worker) -> None:
    messages = worker.messages()
    seen = [next(messages) for _ in range(3)]
    hello = next(message for message in seen if isinstance(message, Hello))
    assert hello == Hello(version=VERSION, pid=worker.process.pid)
    assert sum(isinstance(message, Pulse) for message in seen) == 2


def test_printing_natively_or_not_never_reaches_the_client(worker: Worker, tmp_path: Path) -> None:
    worker.solve("r", "print")
    assert isinstance(worker.events("r")[-1], RunFinished)
    output = (tmp_path / "output").read_text()
    for noise in ('"type":"hello"', "native noise", "noise from C"):
        assert noise in output


def test_it_ends_at_once_in_mid_run_when_the_client_is_gone(worker: Worker) -> None:
    worker.solve("r", "hang")
    threading.Timer(0.5, worker.stdin.close).start()
    assert worker.process.wait(timeout=10) == 0


def test_it_ends_at_once_when_told_to(worker: Worker) -> None:
    worker.solve("r", "hang")
    worker.send(Shutdown())
    assert worker.process.wait(timeout=10) == 0


@pytest.mark.skipif(os.name == "nt", reason="there are no such signals")
def test_ctrl_c_in_the_terminal_is_left_to_the_client(worker: Worker) -> None:
    next(worker.messages())
    worker.process.send_signal(signal.SIGINT)
    worker.solve("r", "")
    assert isinstance(worker.events("r")[-1], RunFinished)


@pytest.mark.parametrize(
    ("problem", "trouble", "message"),
    [
        ("memory", Trouble.MEMORY, "out of memory"),
        ("defect", Trouble.ENGINE, "ValueError: no such thing"),
        ("trouble", Trouble.MODEL, "The model is damaged."),
    ],
)
def test_an_error_ends_the_run_but_not_the_worker(
    worker: Worker, tmp_path: Path, problem: str, trouble: Trouble, message: str
) -> None:
    worker.solve("bad", problem)
    worker.solve("good", "")
    failure = worker.failure("bad")
    assert failure.trouble is trouble
    assert message in failure.message
    assert "Traceback" not in failure.message
    assert isinstance(worker.events("good")[-1], RunFinished)
    assert ("Traceback" in (tmp_path / "output").read_text()) == (problem != "trouble")


def test_a_run_whose_log_cannot_be_opened_fails(worker: Worker, tmp_path: Path) -> None:
    worker.solve("r", "", tmp_path / "nowhere" / "log")
    assert worker.failure("r").trouble is Trouble.STORAGE


def test_a_run_cancelled_before_its_turn_is_not_begun(worker: Worker) -> None:
    worker.solve("first", "slow")
    worker.solve("second", "")
    worker.send(Cancel("second"))
    worker.send(Cancel("first"))
    worker.events("first")
    second = worker.events("second")
    assert len(second) == 2
    assert isinstance(second[-1], RunFinished)
    assert second[-1].stop is Stop.CANCELLED
