"""What a run gives a message."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from app.errors import CommandError
from app.logs import events_in
from app.outcome import told
from app.run_view import RunView
from app.store.records import Message, State
from engine.protocol import Stop


@dataclass(frozen=True, slots=True)
class Result:
    """The fields of a message that come from its run."""

    text: str
    state: State
    answer: str | None
    note: str


def result_of(view: RunView) -> Result:
    """What there is of a run, ended or not. The text is that of the best path, exactly."""
    answer = view.answered.answer if view.answered else None
    return Result(
        _text(view), _state(view), answer or None, told(view.failed) if view.failed else ""
    )


def view_of(log: Path) -> RunView | None:
    """The run in a log, as far as it can be read; None if not at all."""
    view = RunView()
    try:
        for event in events_in(log):
            view.update(event)
    except CommandError:
        return view if view.run else None
    return view


def as_far_as_logged(message: Message) -> Message:
    """A message whose run was cut off with the program, with what the log has of it."""
    if message.state is not State.RUNNING or message.log is None:
        return message
    if (view := view_of(message.log)) is None:
        return message
    result = result_of(view)
    return replace(
        message, text=result.text, state=result.state, answer=result.answer, note=result.note
    )


def _state(view: RunView) -> State:
    if view.failed is not None:
        return State.FAILED
    if view.finished is None:
        return State.RUNNING
    return State.COMPLETE if view.finished.stop is Stop.COMPLETE else State.STOPPED


def _text(view: RunView) -> str:
    tip = view.leader or view.root
    if view.answered is not None and tip.lineage != view.answered.lineage:
        return view.answered.text
    path = tip.path()
    while len(tip.children) == 1:  # what is being written where there is but one way on
        tip = tip.children[0]
        path.append(tip)
    return "".join(node.text for node in path)
