"""`sapwood chat`: lines in, answers out, and all of it kept."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

import app.chat
from app.store import Message, Role, State, Store, store_path
from engine.protocol import AnyEvent, Event, Search, SolveRequest, Trouble, encode
from tests.app.conftest import Ran, Sapwood
from tests.app.scripted import ScriptedEngine
from tests.app.streams import (
    REQUEST,
    answered,
    beginning,
    failing_run,
    finished,
    node,
    numbered,
    whole_run,
)

ROOT = Path(__file__).parents[2]


def single_path(*steps: str, ended: Sequence[Event] = (answered(), finished())) -> list[AnyEvent]:
    """A search with one path, as a quick answer is."""
    request = msgspec.structs.replace(REQUEST, search=Search(policy="greedy", n=1))
    nodes = [event for depth, text in enumerate(steps) for event in node((0,) * (depth + 1), text)]
    return numbered([*beginning(request), *nodes, *ended])


class Talk:
    """A chat through pipes, and what was asked of the engine."""

    def __init__(self, sapwood: Sapwood, monkeypatch: pytest.MonkeyPatch) -> None:
        self._sapwood = sapwood
        self._monkeypatch = monkeypatch
        self.requests: list[SolveRequest] = []

    def __call__(self, said: str, *arguments: str, scripts: Sequence[Sequence[AnyEvent]]) -> Ran:
        engine = ScriptedEngine(scripts)
        self.requests = engine.requests
        self._monkeypatch.setattr(app.chat, "LocalEngine", engine)
        return self._sapwood("chat", *arguments, stdin=said.encode())


@pytest.fixture
def talk(sapwood: Sapwood, monkeypatch: pytest.MonkeyPatch) -> Talk:
    return Talk(sapwood, monkeypatch)


def kept(session: int = 1) -> list[Message]:
    with Store() as store:
        return store.path(store.session(session).head)


QUICK = single_path("3 + 5 = 8.\n\n", "So \\boxed{8}")


def test_each_line_is_answered(talk: Talk) -> None:
    ran = talk("How many?\n\n  \nAnd now?", scripts=[QUICK, single_path("None.")])
    assert (ran.code, ran.out) == (0, "3 + 5 = 8.\n\nSo \\boxed{8}\nNone.\n")
    assert [request.problem for request in talk.requests] == ["How many?", "And now?"]
    assert {request.search.policy for request in talk.requests} == {"greedy"}
    assert "answer: 0.95: 8" in ran.err
    assert ran.err.endswith("Kept as session 1.\n")


def test_quiet_gives_the_answers_alone(talk: Talk) -> None:
    ran = talk("How many?\n", "--quiet", scripts=[QUICK])
    assert (ran.out, ran.err) == ("8\n", "")
    ran = talk("How many?\nAnd now?\n", "--quiet", scripts=[numbered([*beginning(), finished()])])
    assert (ran.out, ran.err) == ("\n\n", "")


def test_the_best_of_several_paths_is_told_at_the_end(talk: Talk) -> None:
    ran = talk("How many?\n", "--n", "4", scripts=[whole_run()])
    assert (ran.code, ran.out) == (0, "...\n")
    assert talk.requests[0].search.policy == "beam"


def test_what_was_said_is_kept_exactly(talk: Talk) -> None:
    talk("How  many?\nAnd now?\n", scripts=[QUICK])
    messages = kept()
    assert [(m.role, m.text) for m in messages] == [
        (Role.USER, "How  many?"),
        (Role.ASSISTANT, "3 + 5 = 8.\n\nSo \\boxed{8}"),
        (Role.USER, "And now?"),
        (Role.ASSISTANT, "3 + 5 = 8.\n\nSo \\boxed{8}"),
    ]
    assert messages[1].answer == "8"
    assert messages[1].state is State.COMPLETE
    assert str(messages[1].log) == talk.requests[0].log
    assert messages[1].settings["search"]["policy"] == "greedy"


def test_a_session_can_be_gone_on_with(talk: Talk) -> None:
    talk("one\n", scripts=[QUICK])
    ran = talk("two\n", "--session", "1", scripts=[QUICK])
    assert ran.code == 0
    assert [m.text for m in kept() if m.role is Role.USER] == ["one", "two"]


def test_a_session_there_is_not_is_told_before_anything_is_asked(talk: Talk) -> None:
    ran = talk("one\n", "--session", "7", scripts=[QUICK])
    assert (ran.code, talk.requests) == (2, [])


def test_a_failure_is_told_and_kept_and_the_chat_goes_on(talk: Talk) -> None:
    ran = talk("one\ntwo\n", scripts=[failing_run(Trouble.ENGINE), QUICK])
    assert ran.code == 3
    assert "sapwood: It did not work. Do it otherwise." in ran.err
    assert ran.out.endswith("So \\boxed{8}\n")
    failed = kept()[1]
    assert (failed.state, failed.note) == (State.FAILED, "It did not work. Do it otherwise.")


def test_a_model_that_cannot_be_used_ends_the_chat(talk: Talk) -> None:
    ran = talk("one\ntwo\n", scripts=[failing_run(Trouble.MODEL)])
    assert (ran.code, len(talk.requests)) == (3, 1)


def test_nothing_said_keeps_nothing(talk: Talk) -> None:
    ran = talk("\n \n", scripts=[QUICK])
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    with Store() as store:
        assert store.sessions() == []


def test_text_told_again_after_a_loss_is_written_once(talk: Talk) -> None:
    lost = [*node((0,), "One two three.")[:3], *node((0,), "One two three.")]
    request = msgspec.structs.replace(REQUEST, search=Search(policy="greedy", n=1))
    script = numbered([*beginning(request), *lost, answered(), finished()])
    assert talk("x\n", scripts=[script]).out == "One two three.\n"


def test_control_characters_of_a_model_are_shown_not_sent(talk: Talk) -> None:
    assert talk("x\n", scripts=[single_path("\x1b[31mred")]).out == "\\x1b[31mred\n"


PROGRAM = """
import sys
from pathlib import Path
import app.chat
from app import cli
from engine.protocol import decode_event
from tests.app.scripted import ScriptedEngine

events = [decode_event(line) for line in Path(sys.argv[1]).read_bytes().splitlines()]
app.chat.LocalEngine = ScriptedEngine([events], float(sys.argv[2]))
sys.exit(cli.run(["chat", "--n", "4"]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize(
    ("delay", "moment"), [(0.5, "searching"), (0.0, "answer: ")], ids=["busy", "waiting"]
)
def test_an_interrupt_ends_the_chat_with_what_there_is(
    tmp_path: Path, delay: float, moment: str
) -> None:
    script = tmp_path / "events"
    script.write_bytes(b"".join(map(encode, whole_run())))
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(script), str(delay)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write("How many?\n")
        process.stdin.flush()  # and left open: there may be more to come
        assert any(moment in line for line in process.stderr)
        process.send_signal(signal.SIGINT)
        told, _ = process.communicate(timeout=30)
    finally:
        process.kill()
    assert (process.returncode, told) == (4, "...\n")
    with Store(store_path()) as store:
        assert [m.role for m in store.messages(1)] == [Role.USER, Role.ASSISTANT]
