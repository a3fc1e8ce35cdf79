"""The conversation that is open, kept as it happens."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import msgspec

from app.errors import CommandError
from app.store import Message, Role, State, Store, as_far_as_logged
from app.tui.conversation import Conversation
from app.tui.effort import Effort, Models
from app.tui.turn import Turn
from engine.protocol import (
    Answered,
    AnyEvent,
    Counters,
    RunFailed,
    RunFinished,
    RunStarted,
    SolveRequest,
    Stop,
    Trouble,
)


class Archive:
    """Puts turns into the store and gets them out again.

    Attributes:
        session: the open conversation; None until something is asked.

    Raises:
        CommandError: (all calls) the store cannot be used.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.session: int | None = None
        self._messages: WeakKeyDictionary[Turn, int] = WeakKeyDictionary()
        """The message that each turn's solution is. A turn lives with its conversation or until its
        run has ended, not with this."""

    def begin(self, turn: Turn, before: Turn | None) -> None:
        """Keep a question, what it follows, and that it is being answered."""
        if self.session is None:
            self.session = self.store.create().id
        settings = _settings(turn)
        asked = self.store.add(
            self.session,
            Role.USER,
            turn.problem,
            parent=self._messages.get(before) if before is not None else None,
            settings=settings,
        )
        given = self.store.add(
            self.session,
            Role.ASSISTANT,
            "",
            parent=asked.id,
            settings=settings,
            log=turn.request.log,
            state=State.RUNNING,
        )
        self._messages[turn] = given.id

    def record(self, turn: Turn) -> None:
        """Keep what a run has come to."""
        if (message := self._messages.get(turn)) is not None:
            self.store.record(message, turn.view)

    def close(self) -> None:
        """Begin a new conversation with the next question."""
        self.session = None

    def choose(self, turn: Turn) -> None:
        """Remember that the branch which ends with this turn is the open one."""
        if (message := self._messages.get(turn)) is not None:
            self.store.select(message)

    def open(self, session: int) -> Conversation:
        """Go on with a conversation; gives its turns as far as the store itself has them."""
        messages = {message.id: message for message in self.store.messages(session)}
        conversation = Conversation()
        turns: dict[int | None, Turn | None] = {None: None}
        for given in messages.values():
            asked = messages.get(given.parent) if given.parent is not None else None
            if given.role is Role.ASSISTANT and asked is not None and asked.role is Role.USER:
                turn = _turn(asked, as_far_as_logged(given))
                self._messages[turn] = given.id
                turns[given.id] = turn
                conversation.add(turn, turns.get(asked.parent))
        head = self.store.session(session).head
        if (last := turns.get(head)) is not None:
            conversation.open(last)
        self.session = session
        return conversation


def open_archive() -> Archive | CommandError:
    """The archive of the user, or why there is none."""
    try:
        return Archive(Store())
    except CommandError as error:
        return error


def _settings(turn: Turn) -> dict[str, Any]:
    request = msgspec.structs.replace(turn.request, problem="", log=None)
    settings = {"effort": turn.effort.label, "request": msgspec.to_builtins(request)}
    return settings | ({"preset": turn.preset} if turn.preset else {})


def _turn(asked: Message, given: Message) -> Turn:
    effort = Effort.named(str(given.settings.get("effort", "")))
    try:
        request = msgspec.convert(given.settings.get("request"), SolveRequest)
    except msgspec.ValidationError:  # kept by another program, or an older one
        request = Models().request("", effort)
    log = str(given.log) if given.log is not None else None
    request = msgspec.structs.replace(request, problem=asked.text, log=log)
    turn = Turn(request, effort, str(given.settings.get("preset", "")))
    turn.outline(_outline(given, request))
    return turn


def _outline(given: Message, request: SolveRequest) -> list[AnyEvent]:
    """The run of a message in so few events that they need not be read from its log."""
    events: list[AnyEvent] = [RunStarted(run="", request=request)]
    if given.text or given.answer:
        events.append(Answered(answer=given.answer or "", text=given.text, lineage=(), score=None))
    if given.state is State.FAILED:
        events.append(RunFailed(trouble=Trouble.ENGINE, message=given.note))
    else:
        stop = Stop.COMPLETE if given.state is State.COMPLETE else Stop.CANCELLED
        events.append(RunFinished(stop=stop, counters=Counters()))
    return events
