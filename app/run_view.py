"""The tree of a run as people see it, kept up to date event by event.

Plain data, no terminal: the live view, the text tree and the screens all read this.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, auto

from engine.protocol import (
    Answered,
    AnyEvent,
    BeamsSelected,
    DraftJudged,
    DraftsDropped,
    Memory,
    NodeOpened,
    NodesPruned,
    Phase,
    RunFailed,
    RunFinished,
    RunResumed,
    RunStarted,
    Search,
    SolveRequest,
    StepDrafted,
    StepFinished,
    StepScored,
    Stop,
    TextAppended,
    Throughput,
    Warned,
    WorkerRestarted,
)

Lineage = tuple[int, ...]


class State(Enum):
    """What has become of a node."""

    QUEUED = auto()
    """Known, not being written: its worker was lost and it has not been taken up again."""
    WRITING = auto()
    DRAFT = auto()
    """Being written before its parent is decided."""
    FINISHED = auto()
    """Written, not scored."""
    SCORED = auto()
    KEPT = auto()
    PRUNED = auto()
    COMPLETED = auto()
    """Ends a solution."""
    ANSWER = auto()
    """Ends the solution that was chosen."""


class Hand(Enum):
    """Who wrote a node, where a draft model writes too."""

    DRAFTED = auto()
    """The draft model, and it is not judged yet."""
    ACCEPTED = auto()
    REWRITTEN = auto()
    """The generator, since a draft was not accepted."""


NOT_NEEDED = "a draft that was not needed"
DECIDED = frozenset({State.KEPT, State.PRUNED, State.COMPLETED, State.ANSWER})


@dataclass(slots=True, eq=False)
class Node:
    """One step of the tree."""

    lineage: Lineage
    parent: Node | None
    stage: State = State.WRITING
    """The state, but for drafts, which are told by their parent's."""
    children: list[Node] = field(default_factory=list)
    scores: tuple[float, ...] = ()
    tokens: int = 0
    reason: str = ""
    """Why the node was pruned."""
    hand: Hand | None = None
    """None where nothing was drafted for it."""
    draft: str = ""
    """What was drafted last."""
    chance: float | None = None
    """Of that being accepted, once it is judged."""
    _pieces: list[str] = field(default_factory=list)

    @property
    def state(self) -> State:
        if self.stage is State.WRITING and self.parent and self.parent.stage is not State.KEPT:
            return State.DRAFT
        return self.stage

    @property
    def score(self) -> float | None:
        """The score of the newest step, once there is one."""
        return self.scores[-1] if self.scores else None

    @property
    def text(self) -> str:
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else ""

    @property
    def in_order(self) -> list[Node]:
        """The children by their index; they may have been opened in any order."""
        return sorted(self.children, key=lambda child: child.lineage[-1])

    def append(self, text: str) -> None:
        self._pieces.append(text)

    def rewrite(self, text: str = "") -> None:
        self._pieces = [text] if text else []

    def path(self) -> list[Node]:
        """The nodes from the first step to this one."""
        nodes: list[Node] = []
        node = self
        while node.parent is not None:
            nodes.append(node)
            node = node.parent
        return nodes[::-1]


@dataclass(slots=True)
class Round:
    """What was decided in one round, over all groups."""

    kept: int = 0
    pruned: int = 0
    completed: int = 0
    best: float | None = None

    @property
    def candidates(self) -> int:
        return self.kept + self.pruned + self.completed


@dataclass(slots=True)
class RunView:
    """A run so far. `update` takes constant time for each node an event names."""

    run: str = ""
    request: SolveRequest | None = None
    at: float = 0.0
    """Seconds of the run at the newest event."""
    phase: Phase | None = None
    note: str = ""
    """What the user should know of the models, e.g. that one is a demonstration."""
    root: Node = field(default_factory=lambda: Node((), None, State.KEPT))
    """Stands for the problem; its children are the first steps."""
    nodes: dict[Lineage, Node] = field(default_factory=dict)
    depth: int = 0
    scored: bool = False
    """Whether there are scores at all: not in a search without a verifier."""
    rounds: dict[int, Round] = field(default_factory=dict)
    leader: Node | None = None
    """The tip of the best path so far; the chosen one once there is an answer."""
    answered: Answered | None = None
    _earlier: Answered | None = None
    """The answer of a run that goes on, which is not told again if it stays."""
    _stage: State = State.COMPLETED
    """What the step that ends the answer was before."""
    throughput: Throughput | None = None
    memory: Memory | None = None
    warnings: list[Warned] = field(default_factory=list)
    finished: RunFinished | None = None
    failed: RunFailed | None = None

    @property
    def ended(self) -> bool:
        return self.finished is not None or self.failed is not None

    @property
    def seconds(self) -> float:
        """How long the run took or has taken so far, the loading of models included."""
        return self.at or (self.finished.counters.seconds if self.finished else 0.0)

    def update(self, event: AnyEvent) -> None:
        """Take in the next event."""
        self.at = event.at
        match event:
            case RunStarted():
                self.run, self.request = event.run, event.request
            case Phase():
                self.phase, self.note = event, event.note or self.note
            case NodeOpened():
                node = self._node(event.lineage)
                node.stage, node.scores, node.tokens = State.WRITING, (), 0
                node.hand, node.draft, node.chance = None, "", None
                node.rewrite()
            case TextAppended():
                self._node(event.lineage).append(event.text)
            case StepFinished():
                node = self._node(event.lineage)
                node.rewrite(event.text)
                node.tokens = len(event.tokens)
                self._advance(node, State.FINISHED)
            case StepScored():
                node = self._node(event.lineage)
                node.scores, self.scored = event.scores, True
                self._advance(node, State.SCORED)
            case StepDrafted():
                node = self._node(event.lineage)
                node.draft, node.chance = event.text, None
                if node.hand is not Hand.REWRITTEN:
                    node.hand = Hand.DRAFTED
            case DraftJudged():
                node = self._node(event.lineage)
                node.chance = event.probability
                if not event.accepted or node.hand is not Hand.REWRITTEN:
                    node.hand = Hand.ACCEPTED if event.accepted else Hand.REWRITTEN
            case NodesPruned():
                self._prune(event)
            case DraftsDropped():
                for lineage in event.lineages:
                    if node := self.nodes.get(lineage):
                        node.stage, node.reason = State.PRUNED, NOT_NEEDED
            case BeamsSelected():
                self._select(event)
            case Answered():
                self._answer(event)
            case Throughput():
                self.throughput = event
            case Memory():
                self.memory = event
            case Warned():
                self.warnings.append(event)
            case RunResumed():
                self._reopen()
                self._pause()
            case WorkerRestarted():
                self._pause()
            case RunFinished():
                self.finished = event
                self._close()
                if event.stop is Stop.COMPLETE:
                    self._leave_queued()
                else:
                    self._pause()
            case RunFailed():
                self.failed = event
                self._close()
                self._pause()

    def is_over(self, number: int) -> bool:
        """Whether all of a round is decided, in every group. Looks at all nodes."""
        search = self.request.search if self.request is not None else Search()
        first = self.rounds.get(0, Round()).candidates
        if first < (1 if search.policy == "greedy" else search.n):
            return False
        return all(
            any(child.stage in DECIDED and child.reason != NOT_NEEDED for child in node.children)
            for node in self.nodes.values()
            if node.stage is State.KEPT and len(node.lineage) <= number
        )

    def walk(self) -> Iterator[Node]:
        """All nodes, each before its children, siblings in their order."""
        waiting = self.root.in_order[::-1]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(node.in_order[::-1])

    def _node(self, lineage: Lineage) -> Node:
        """The node of that name, made if need be, and its parents with it."""
        if (node := self.nodes.get(lineage)) is not None:
            return node
        node = self.root
        for end in range(1, len(lineage) + 1):
            name = lineage[:end]
            if (child := self.nodes.get(name)) is None:
                child = self.nodes[name] = Node(name, node)
                node.children.append(child)
            node = child
        self.depth = max(self.depth, len(lineage))
        return node

    def _advance(self, node: Node, stage: State) -> None:
        """A late text or score does not undo a decision."""
        if node.stage not in DECIDED:
            node.stage = stage

    def _prune(self, event: NodesPruned) -> None:
        round = self.rounds.setdefault(event.round, Round())
        for lineage in event.lineages:
            node = self._node(lineage)
            if node.stage is not State.PRUNED:
                node.stage, node.reason = State.PRUNED, event.reason
                round.pruned += 1

    def _select(self, event: BeamsSelected) -> None:
        round = self.rounds.setdefault(event.round, Round())
        for lineages, stage in ((event.kept, State.KEPT), (event.completed, State.COMPLETED)):
            for lineage in lineages:
                node = self._node(lineage)
                if node.stage in DECIDED:
                    continue
                node.stage = stage
                round.kept += stage is State.KEPT
                round.completed += stage is State.COMPLETED
                if node.score is not None:
                    round.best = max(round.best or 0.0, node.score)
        for lineage in (*event.kept[:1], *event.completed):
            self._lead(self._node(lineage))

    def _lead(self, node: Node) -> None:
        """Make the node the tip of the best path if it goes on from there or scores higher."""
        leader = self.leader
        if self.answered is None and (
            leader is None
            or node.lineage[: len(leader.lineage)] == leader.lineage
            or (node.score or 0.0) > (leader.score or 0.0)
        ):
            self.leader = node

    def _answer(self, event: Answered) -> None:
        self._take_back()
        self.answered = event
        self.leader = self.nodes.get(event.lineage, self.leader)
        if self.leader is not None and self.leader.lineage == event.lineage:
            self._stage, self.leader.stage = self.leader.stage, State.ANSWER

    def _take_back(self) -> None:
        """The step that ended the answer is what it was before."""
        if self.leader is not None and self.leader.stage is State.ANSWER:
            self.leader.stage = self._stage

    def _reopen(self) -> None:
        """The run goes on: its answer is one no more, unless nothing better comes."""
        self._take_back()
        self.answered, self._earlier = None, self.answered or self._earlier

    def _close(self) -> None:
        """Nothing better came."""
        if self.answered is None and self._earlier is not None:
            self._answer(self._earlier)

    def _leave_queued(self) -> None:
        """What a lost worker had begun early and the next one did without."""
        for node in self.nodes.values():
            if node.stage is State.QUEUED:
                node.stage, node.reason = State.PRUNED, NOT_NEEDED

    def _pause(self) -> None:
        """Nothing is being written any more; what goes on will be opened again."""
        for node in self.nodes.values():
            if node.stage is State.WRITING:
                node.stage = State.QUEUED
