"""A question and what became of it."""

from __future__ import annotations

import secrets
from collections import deque
from enum import Enum, auto

import msgspec

from app.run_view import Lineage, Node, RunView, State
from app.tui.effort import Effort, label_of
from app.tui.feed import Change, Feed
from engine.protocol import (
    AnyEvent,
    Counters,
    RunFinished,
    SolveRequest,
    Stop,
    WorkerRestarted,
)

_BATCH = 2000
"""Most events taken in at once, so that a burst does not hold up the keys."""


class Standing(Enum):
    """Where a turn stands."""

    QUEUED = auto()
    RUNNING = auto()
    STOPPED = auto()
    FAILED = auto()
    DONE = auto()


class Turn:
    """One question with its run.

    The runner puts events in as they come; the screen takes them out a few times a second.

    Attributes:
        feed: the run so far.
        folds: which branches the user folded or unfolded, by the lineage of the parent.
        lost: why the engine was lost in this run, if it was.
        told_lost: whether the user was told.
        preset: the preset of the catalogue that it was asked with; empty where there was none.
        outlined: whether the view is only an outline of a run of before.
        branch: its place among the turns in the same place on other branches, and their number.
    """

    def __init__(self, request: SolveRequest, effort: Effort, preset: str = "") -> None:
        self.id = secrets.token_hex(6)
        self.request = request
        self.effort = effort
        self.preset = preset
        self.started = False
        self.stopped = False
        self.lost = ""
        self.told_lost = False
        self.folds = Folds()
        self.feed = Feed()
        self.outlined = False
        self.branch: tuple[int, int] = (1, 1)
        self._inbox: deque[AnyEvent] = deque()

    @property
    def problem(self) -> str:
        return self.request.problem

    @property
    def models(self) -> str:
        """The models that answer it, and the preset that they are of."""
        label = label_of(self.request)
        return f"{self.preset}: {label}" if self.preset else label

    @property
    def view(self) -> RunView:
        return self.feed.view

    @property
    def standing(self) -> Standing:
        view = self.view
        if view.failed is not None:
            return Standing.FAILED
        if self.stopped or (view.finished and view.finished.stop is Stop.CANCELLED):
            return Standing.STOPPED
        if view.finished is not None:
            return Standing.DONE
        return Standing.RUNNING if self.started else Standing.QUEUED

    @property
    def active(self) -> bool:
        """Whether there is something to stop."""
        return self.standing in (Standing.QUEUED, Standing.RUNNING)

    @property
    def resumable(self) -> bool:
        """Whether the run broke off with a log to go on from."""
        broken = self.standing in (Standing.STOPPED, Standing.FAILED) and self.view.ended
        return broken and self.request.log is not None and bool(self.view.nodes)

    @property
    def refused(self) -> bool:
        """Whether it was not begun since the plan says that memory is too short for it."""
        return self.view.failed is not None and self.view.failed.forcible

    @property
    def has_news(self) -> bool:
        return bool(self._inbox)

    def put(self, event: AnyEvent) -> None:
        """Something happened in the run."""
        if isinstance(event, WorkerRestarted):
            self.lost = event.cause
        self._inbox.append(event)

    def take(self) -> Change | None:
        """Bring the view up to date; None if nothing happened."""
        if not self._inbox:
            return None
        count = min(len(self._inbox), _BATCH)
        return self.feed.take([self._inbox.popleft() for _ in range(count)])

    def stop(self) -> None:
        """The user wants no more of it. What there is stays, and what the engine still says is
        taken in."""
        self.stopped = True
        if not self.started:
            self._inbox.append(RunFinished(stop=Stop.CANCELLED, counters=Counters()))

    def resume(self) -> None:
        """Begin again from the log, which is told anew."""
        self.request = msgspec.structs.replace(self.request, resume=True)
        self.id = secrets.token_hex(6)
        self.started = self.stopped = self.told_lost = False
        self.lost = ""
        self.feed = Feed()
        self._inbox.clear()

    def outline(self, events: list[AnyEvent]) -> None:
        """It was asked before; these events stand for all of its run."""
        self.started = self.outlined = True
        self.feed.take(events)

    def load(self, events: list[AnyEvent]) -> None:
        """Put the whole run in the place of its outline."""
        ended = self.view
        self.outlined = False
        self.feed = Feed()
        self.feed.take(events)
        if not self.view.ended:  # cut off with the program that had asked
            end = ended.failed or ended.finished
            assert end is not None
            self.feed.take([msgspec.structs.replace(end, at=self.view.at)])

    @property
    def text(self) -> str:
        """The solution as far as it is written: the chosen one, or the best path so far."""
        if self.view.answered is not None:
            return self.view.answered.text
        return "".join(node.text for node in _best_path(self.view))


class Folds:
    """What the user did to the tree, by lineage, so that it outlives the rows of the widget."""

    def __init__(self) -> None:
        self.all_pruned = False
        """Show pruned nodes everywhere."""
        self.unfolded: set[Lineage] = set()
        """Parents whose pruned children are shown."""
        self.collapsed: set[Lineage] = set()
        """Nodes whose children are hidden."""

    def hides_pruned(self, parent: Node) -> bool:
        return not self.all_pruned and parent.lineage not in self.unfolded


def _best_path(view: RunView) -> list[Node]:
    """The path to the leader and on along the first living child."""
    node = view.leader or view.root
    path = node.path()
    while living := [child for child in node.in_order if child.state is not State.PRUNED]:
        node = living[0]
        path.append(node)
    return path
