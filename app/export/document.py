"""What is exported: turns in the order in which they are read, each with its run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from app.logs import events_in
from app.run_view import RunView
from app.store import Message, Session, Store, as_far_as_logged, title_of, view_of


@dataclass(frozen=True, slots=True)
class Turn:
    """A message, and the run that gave it if its log is still there."""

    message: Message
    run: RunView | None
    number: int
    """Its place in the document, from 1."""
    branches_from: int | None = None
    """The number of the message it follows, where that is not the one before it."""


@dataclass(frozen=True, slots=True)
class Document:
    """A conversation with all its branches, or a single run."""

    title: str
    session: Session | None = None
    turns: tuple[Turn, ...] = ()
    run: RunView | None = None


def document_of_session(store: Store, id: int) -> Document:
    """A conversation, the open branch first.

    Raises:
        CommandError: there is no such session.
    """
    session = store.session(id)
    open_branch = {message.id for message in store.path(session.head)}
    turns: list[Turn] = []
    numbers: dict[int | None, int] = {}
    for message in _in_order(store.messages(id), open_branch):
        number = numbers[message.id] = len(turns) + 1
        follows = numbers.get(message.parent, 0)
        run = view_of(message.log) if message.log else None
        turns.append(
            Turn(
                as_far_as_logged(message),
                run,
                number,
                branches_from=follows if follows != number - 1 else None,
            )
        )
    return Document(session.title, session=session, turns=tuple(turns))


def document_of_run(log: Path) -> Document:
    """A single run.

    Raises:
        CommandError: the file is not a run log.
    """
    view = RunView()
    for event in events_in(log):
        view.update(event)
    return Document(title_of(view.request.problem) if view.request else log.name, run=view)


def _in_order(messages: list[Message], first: set[int]) -> Iterator[Message]:
    """Each message before those that follow it, of these the one on the open branch first."""
    followers: dict[int | None, list[Message]] = {}
    for message in messages:
        followers.setdefault(message.parent, []).append(message)
    waiting: list[Message] = []

    def wait(parent: int | None) -> None:
        next_ones = followers.get(parent, [])
        waiting.extend(sorted(next_ones, key=lambda m: (m.id not in first, m.id), reverse=True))

    wait(None)
    while waiting:
        message = waiting.pop()
        yield message
        wait(message.id)
