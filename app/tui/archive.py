"""The conversation that is open, kept as it happens."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec

from app.errors import CommandError
from app.store import Message, Role, State, Store, as_far_as_logged
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
        self._messages: dict[Turn, int] = {}
        """The message that each turn's solution is."""
        self._last: int | None = None

    def begin(self, turn: Turn) -> None:
        """Keep a question, and that it is being answered."""
        if self.session is None:
            self.session = self.store.create().id
        settings = _settings(turn)
        asked = self.store.add(
            self.session, Role.USER, turn.problem, parent=self._last, settings=settings
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
        self._messages[turn] = self._last = given.id

    def record(self, turn: Turn) -> None:
        """Keep what a run has come to."""
        if (message := self._messages.get(turn)) is not None:
            self.store.record(message, turn.view)

    def close(self) -> None:
        """Begin a new conversation with the next question."""
        self.session = self._last = None

    def open(self, session: int) -> list[Turn]:
        """Go on with a conversation; gives its turns as far as the store itself has them."""
        path = self.store.path(self.store.session(session).head)
        self.session, self._last = session, path[-1].id if path else None
        turns: list[Turn] = []
        for asked, given in pairwise(path):
            if asked.role is Role.USER and given.role is Role.ASSISTANT:
                turn = _turn(asked, as_far_as_logged(given))
                self._messages[turn] = given.id
                turns.append(turn)
        return turns


def open_archive() -> Archive | CommandError:
    """The archive of the user, or why there is none."""
    try:
        return Archive(Store())
    except CommandError as error:
        return error


def _settings(turn: Turn) -> dict[str, Any]:
    request = msgspec.structs.replace(turn.request, problem="", log=None)
    return {"effort": turn.effort.label, "request": msgspec.to_builtins(request)}


def _turn(asked: Message, given: Message) -> Turn:
    effort = Effort.named(str(given.settings.get("effort", "")))
    try:
        request = msgspec.convert(given.settings.get("request"), SolveRequest)
    except msgspec.ValidationError:  # kept by another program, or an older one
        request = Models().request("", effort)
    log = str(given.log) if given.log is not None else None
    request = msgspec.structs.replace(request, problem=asked.text, log=log)
    turn = Turn(request, effort)
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
