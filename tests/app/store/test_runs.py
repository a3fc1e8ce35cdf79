"""What a message gets from its run."""

from __future__ import annotations

from pathlib import Path

from app.store import Role, State, Store, as_far_as_logged, result_of, view_of
from engine.protocol import BeamsSelected, Stop, Trouble, encode
from tests.app.streams import (
    answered,
    beginning,
    failing_run,
    finished,
    first_round,
    node,
    numbered,
    whole_run,
)
from tests.app.streams import (
    view_of as seen,
)


def test_a_run_gives_the_exact_text_of_its_path_and_the_answer() -> None:
    result = result_of(seen(whole_run()))
    assert result.text == "Tom has 3 apples.\n\n3 + 5 = 8, so \\boxed{8}"
    assert (result.state, result.answer, result.note) == (State.COMPLETE, "8", "")


def test_a_run_that_goes_on_gives_what_there_is() -> None:
    result = result_of(seen(numbered([*beginning(), *first_round()])))
    assert (result.text, result.state) == ("Tom has 3 apples.\n\n", State.RUNNING)
    kept = BeamsSelected(round=0, kept=((0,),))
    single = [*beginning(), *node((0,), "One.\n\n"), kept, *node((0, 0), "Two.")[:2]]
    assert result_of(seen(numbered(single))).text == "One.\n\nTwo."


def test_how_a_run_ended_is_kept() -> None:
    stopped = numbered([*beginning(), *first_round(), answered(""), finished(Stop.CANCELLED)])
    assert result_of(seen(stopped)).state is State.STOPPED
    assert result_of(seen(stopped)).answer is None
    failed = result_of(seen(failing_run(Trouble.MODEL)))
    assert (failed.state, failed.note) == (State.FAILED, "It did not work. Do it otherwise.")


def test_a_message_cut_off_with_the_program_is_read_from_its_log(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    log.write_bytes(b"".join(map(encode, whole_run()[:-12])))
    with Store(tmp_path / "sessions.db") as store:
        session = store.create().id
        message = store.add(session, Role.ASSISTANT, "", log=log, state=State.RUNNING)
        told = as_far_as_logged(message)
        assert told.text.startswith("Tom has 3 apples.")
        assert told.state is State.RUNNING
        view = view_of(log)
        assert view is not None
        assert store.record(message.id, view).text == told.text


def test_a_message_whose_log_is_gone_stays_as_it_is(tmp_path: Path) -> None:
    with Store(tmp_path / "sessions.db") as store:
        session = store.create().id
        message = store.add(
            session, Role.ASSISTANT, "so far", log=tmp_path / "gone", state=State.RUNNING
        )
        assert as_far_as_logged(message) == message
