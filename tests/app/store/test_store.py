"""Conversations are kept, found, deleted and brought back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.errors import CommandError
from app.store import TITLE, Role, State, Store, store_path
from engine.places import runs_dir


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "sessions.db") as store:
        yield store


def test_the_file_is_where_the_logs_are(home: Path) -> None:
    assert store_path() == home / "sessions.db"
    assert runs_dir().parent == home


@pytest.mark.parametrize(
    "text", ["", " \n\n", "\\(x\\) \x00 \x1b[31m \u202e 数 \r\n\t", "x" * 100_000]
)
def test_text_is_kept_exactly(store: Store, text: str) -> None:
    session = store.create()
    message = store.add(session.id, Role.USER, text)
    assert store.message(message.id).text == text


def test_a_message_keeps_all_that_belongs_to_it(store: Store, tmp_path: Path) -> None:
    session = store.create("title")
    asked = store.add(session.id, Role.USER, "How many?", settings={"effort": "think", "n": 8})
    log = tmp_path / "runs" / "a.jsonl"
    given = store.add(session.id, Role.ASSISTANT, "", parent=asked.id, log=log, state=State.RUNNING)
    assert (given.log, given.state, given.answer) == (log, State.RUNNING, None)
    store.update(given.id, text="It is 8.", answer="8", state=State.COMPLETE, note="slow")
    kept = store.messages(session.id)
    assert [message.text for message in kept] == ["How many?", "It is 8."]
    assert kept[0].settings == {"effort": "think", "n": 8}
    assert (kept[1].answer, kept[1].note, kept[1].parent) == ("8", "slow", asked.id)


def test_the_folder_can_move_with_its_logs(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    with Store(old / "sessions.db") as store:
        session = store.create()
        store.add(session.id, Role.ASSISTANT, "", log=old / "runs" / "a.jsonl")
        store.add(session.id, Role.ASSISTANT, "", log=tmp_path / "elsewhere.jsonl")
    old.rename(new)
    with Store(new / "sessions.db") as store:
        logs = [message.log for message in store.messages(session.id)]
    assert logs == [new / "runs" / "a.jsonl", tmp_path / "elsewhere.jsonl"]


def test_the_first_message_names_a_session_without_a_title(store: Store) -> None:
    session = store.create()
    first = store.add(session.id, Role.USER, "Tom has\n 3 apples. " + "And more. " * 20)
    store.add(session.id, Role.USER, "Another", parent=first.id)
    title = store.session(session.id).title
    assert title.startswith("Tom has 3 apples. And")
    assert len(title) <= TITLE
    assert store.rename(session.id, "Apples").title == "Apples"


def test_a_conversation_branches_at_any_message(store: Store) -> None:
    session = store.create().id
    first = store.add(session, Role.USER, "a").id
    answer = store.add(session, Role.ASSISTANT, "b", parent=first).id
    left = store.add(session, Role.USER, "c", parent=answer).id
    right = store.add(session, Role.USER, "d", parent=answer).id
    anew = store.add(session, Role.USER, "e").id
    assert [m.text for m in store.path(left)] == ["a", "b", "c"]
    assert [m.text for m in store.path(right)] == ["a", "b", "d"]
    assert [m.text for m in store.path(anew)] == ["e"]
    assert store.session(session).head == anew
    store.select(left)
    assert store.session(session).head == left
    assert store.path(None) == []


def test_a_message_follows_only_one_of_its_own_session(store: Store) -> None:
    one, other = store.create().id, store.create().id
    message = store.add(one, Role.USER, "a").id
    with pytest.raises(ValueError, match="same session"):
        store.add(other, Role.USER, "b", parent=message)


def test_the_session_used_last_comes_first(store: Store) -> None:
    a, b, c = (store.create(title).id for title in "abc")
    store.add(a, Role.USER, "again")
    assert [session.id for session in store.sessions()] == [a, c, b]
    assert [session.messages for session in store.sessions(limit=2)] == [1, 0]


def test_a_deleted_session_is_out_of_sight_and_comes_back_whole(store: Store) -> None:
    a, b = store.create("a").id, store.create("b").id
    message = store.add(a, Role.USER, "needle").id
    store.delete(a)
    store.delete(b)
    assert store.sessions() == []
    assert store.search("needle") == []
    assert [session.id for session in store.sessions(deleted=True)] == [b, a]
    restored = [store.undo(), store.undo(), store.undo()]
    assert [session and session.id for session in restored] == [b, a, None]
    assert store.search("needle")[0].message == message


def test_search_finds_titles_and_messages_by_the_beginnings_of_words(store: Store) -> None:
    apples = store.create("Apples and pears").id
    message = store.add(apples, Role.USER, "Tom has 3 apples and finds some pears.").id
    other = store.create("Other").id
    store.add(other, Role.USER, "Nothing of the kind")
    found = store.search("APPL pear")
    assert [(f.session.id, f.message) for f in found] == [(apples, None), (apples, message)]
    assert "apples and finds" in found[1].excerpt
    assert len(store.search("appl", limit=1)) == 1


def test_search_follows_changes(store: Store) -> None:
    session = store.create("old").id
    message = store.add(session, Role.ASSISTANT, "before").id
    store.update(message, text="after")
    store.rename(session, "new")
    assert not store.search("before")
    assert not store.search("old")
    assert len(store.search("after")) == len(store.search("new")) == 1


@pytest.mark.parametrize(
    "words", ["", " ", '"', "a OR", "NEAR(", "title:", "*", "\\frac{", "-", "'"]
)
def test_no_search_is_an_error(store: Store, words: str) -> None:
    store.search(words)


def test_what_does_not_exist_is_told(store: Store) -> None:
    for call in (store.session, store.messages, store.delete, store.restore, store.message):
        with pytest.raises(CommandError, match="There is no"):
            call(99)
