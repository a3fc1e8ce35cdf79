"""What the log of an interrupted run says, and what of it need not be said again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from msgspec.structs import replace

from engine.errors import EngineError
from engine.protocol import (
    Answered,
    AnyEvent,
    BeamsSelected,
    Counters,
    DraftJudged,
    Event,
    NodeOpened,
    NodesPruned,
    RunFailed,
    RunFinished,
    RunResumed,
    RunStarted,
    SolveRequest,
    StepFinished,
    StepScored,
    Stop,
    TextAppended,
    Throughput,
    Trouble,
    Warned,
)
from engine.runlog import read_entries
from engine.scheduling.past import Past, PastNode
from engine.search.policy import Ending, Lineage

_E = TypeVar("_E", bound=Event)

_FREE_TO_CHANGE = {"budget", "expected", "force", "log", "resume", "time_limit"}
"""Fields of a request that do not change the tree."""


@dataclass
class History:
    """The events of a run so far, `size` bytes of log."""

    events: list[AnyEvent] = field(default_factory=list)
    size: int = 0
    _nodes: dict[Lineage, PastNode] = field(default_factory=dict)
    _unfinished: dict[Lineage, str] = field(default_factory=dict)
    """What nodes that were not finished had as text."""
    _said: set[Event] = field(default_factory=set)
    _answer: Answered | None = None
    spent: Counters = field(default_factory=Counters)
    """What all of it cost, as far as is known."""

    @property
    def seconds(self) -> float:
        """How long the run had been going."""
        return self.events[-1].at if self.events else 0.0

    @property
    def complete(self) -> bool:
        """Whether there is nothing left to do."""
        return bool(self.events) and isinstance(self.events[-1], RunFinished)

    @property
    def past(self) -> Past:
        return Past(dict(self._nodes))

    def repeats(self, event: Event) -> bool:
        """Whether a resumed run that emits `event` only says again what the log has.

        A finished node counts as said whatever its text is now: where floating-point ties make
        it come out differently, the log stays right.
        """
        match event:
            case NodeOpened() | TextAppended() | StepFinished():
                return event.lineage in self._nodes
            case StepScored():
                node = self._nodes.get(event.lineage)
                return node is not None and node.scores is not None
            case BeamsSelected() | NodesPruned() | Warned():
                return _content(event) in self._said
            case Answered():
                return self._answer is not None and _content(event) == self._answer
        return False

    def flips(self, event: StepFinished) -> bool:
        """Whether a node that is written again differs from what the log has of it.

        Its draws are the same; only a floating-point tie can make it so.
        """
        return not event.text.startswith(self._unfinished.pop(event.lineage, ""))

    def answered(self, event: Answered) -> None:
        """`event` is now the latest answer, so that only its repetition is one."""
        self._answer = _content(event)

    def add(self, event: AnyEvent) -> None:
        self.events.append(event)
        match event:
            case NodeOpened():
                self._unfinished[event.lineage] = ""
            case TextAppended():
                known = self._unfinished.get(event.lineage, "")
                self._unfinished[event.lineage] = known + event.text
            case StepFinished():
                self._unfinished.pop(event.lineage, None)
                self._nodes[event.lineage] = PastNode(
                    event.tokens, event.text, Ending(event.ending), None
                )
            case StepScored():
                node = self._nodes.get(event.lineage)
                if node is not None:
                    self._nodes[event.lineage] = PastNode(
                        node.tokens, node.text, node.ending, event.scores
                    )
            case BeamsSelected() | NodesPruned() | Warned():
                self._said.add(_content(event))
            case Answered():
                self.answered(event)
            case RunResumed():
                self.spent = event.spent
            case Throughput():
                self.spent = replace(
                    self.spent, generated_tokens=event.generated, verified_tokens=event.verified
                )
            case DraftJudged():
                self.spent = replace(
                    self.spent,
                    steps_drafted=self.spent.steps_drafted + 1,
                    steps_accepted=self.spent.steps_accepted + event.accepted,
                )


def read_history(path: str, request: SolveRequest) -> History:
    """What the log at `path` holds of the run that `request` asks to go on with.

    An ending that left the run incomplete (cancelled, out of time, failed) is not part of it.
    A log without one whole line gives an empty history.

    Raises:
        EngineError: the log cannot be read, or is of another request.
    """
    entries = list(read_entries(path))
    ending = None
    if entries and _is_incomplete_ending(entries[-1].event):
        ending = entries.pop().event
    history = History(size=entries[-1].end if entries else 0)
    for entry in entries:
        history.add(entry.event)
    if isinstance(ending, RunFinished) and ending.counters != Counters():
        history.spent = ending.counters
    else:
        history.spent = replace(history.spent, seconds=history.seconds)
    if history.events:
        _check_same_request(path, history.events, request)
    return history


def _is_incomplete_ending(event: AnyEvent) -> bool:
    return isinstance(event, RunFailed) or (
        isinstance(event, RunFinished) and event.stop is not Stop.COMPLETE
    )


def _check_same_request(path: str, events: Sequence[AnyEvent], request: SolveRequest) -> None:
    first = events[0]
    assert isinstance(first, RunStarted)  # the reader has seen to that
    for name in request.__struct_fields__:
        if name not in _FREE_TO_CHANGE and getattr(first.request, name) != getattr(request, name):
            raise EngineError(
                Trouble.USAGE,
                f"The run log {path} is of another run: its {name} differs.",
                f"Resume it with the {name} it was started with, or give a new log.",
            )


def _content(event: _E) -> _E:
    """The event without its place and time."""
    return replace(event, seq=-1, at=0.0)
