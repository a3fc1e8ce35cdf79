"""Events into a view, remembering what they touched, so that only that is drawn again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from app.run_view import Lineage, Node, RunView
from engine.protocol import (
    Answered,
    AnyEvent,
    BeamsSelected,
    DraftJudged,
    DraftsDropped,
    NodeOpened,
    NodesPruned,
    RunFailed,
    RunFinished,
    RunResumed,
    StepDrafted,
    StepFinished,
    StepScored,
    Stop,
    TextAppended,
    WorkerRestarted,
)


@dataclass(slots=True)
class Change:
    """What a batch of events changed in the tree."""

    nodes: set[Node] = field(default_factory=set)
    everything: bool = False
    """So much that all of the tree is to be drawn again."""


@dataclass(slots=True)
class Times:
    """When a node was opened and written, in seconds of the run."""

    opened: float
    finished: float | None = None


class Feed:
    """A view that events flow into.

    Attributes:
        view: the run so far.
        times: when things happened to each node.
    """

    def __init__(self) -> None:
        self.view = RunView()
        self.times: dict[Lineage, Times] = {}
        self._broken = False
        """Whether an engine was lost on the way, of which steps may be left that nobody needs."""
        self._beams: dict[Lineage, tuple[int, float]] = {}
        """Tokens of each path that is complete, and the seconds that it took."""

    @property
    def goodput(self) -> float | None:
        """Mean tokens of a finished beam by its mean completion time: the precise goodput of
        FastTTS, in tokens a second; None before one is finished."""
        seconds = sum(took for _, took in self._beams.values())
        return sum(tokens for tokens, _ in self._beams.values()) / seconds if seconds else None

    def take(self, events: Iterable[AnyEvent]) -> Change:
        """Take in the next events."""
        change = Change()
        for event in events:
            leader = self.view.leader
            self.view.update(event)
            self._time(event)
            for node in filter(None, map(self.view.nodes.get, _named(event))):
                change.nodes.add(node)
                if isinstance(event, BeamsSelected):  # its drafts are drafts no more
                    change.nodes.update(node.children)
            if self.view.leader is not leader:
                for tip in filter(None, (leader, self.view.leader)):
                    change.nodes.update(tip.path())
            if isinstance(event, RunResumed | WorkerRestarted):
                change.everything = self._broken = True
            elif isinstance(event, RunFinished):
                change.everything |= self._broken or event.stop is not Stop.COMPLETE
            elif isinstance(event, RunFailed):
                change.everything = True
        return change

    def _time(self, event: AnyEvent) -> None:
        match event:
            case NodeOpened():
                self.times[event.lineage] = Times(event.at)
            case StepFinished():
                self.times.setdefault(event.lineage, Times(event.at)).finished = event.at
            case BeamsSelected():
                for lineage in event.completed:
                    self._complete(lineage)

    def _complete(self, lineage: Lineage) -> None:
        begun, ended = self.times.get(lineage[:1]), self.times.get(lineage)
        if begun is not None and ended is not None and ended.finished is not None:
            tokens = sum(node.tokens for node in self.view.nodes[lineage].path())
            self._beams[lineage] = tokens, ended.finished - begun.opened


def _named(event: AnyEvent) -> tuple[Lineage, ...]:
    """The nodes that an event is about."""
    match event:
        case (
            NodeOpened()
            | TextAppended()
            | StepDrafted()
            | DraftJudged()
            | StepFinished()
            | StepScored()
        ):
            return (event.lineage,)
        case NodesPruned() | DraftsDropped():
            return event.lineages
        case BeamsSelected():
            return (*event.kept, *event.completed)
        case Answered():
            return ()  # the chosen path is told by the change of the leader
    return ()
