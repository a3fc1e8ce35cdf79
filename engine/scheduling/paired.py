"""Two models that write: a small one drafts, a large one reads the drafts and writes what does not
stand.

In every pass the draft model adds a token to all drafts that are being written, and the target
reads all drafts that are complete, along with a token of every step that it writes itself.

Randomness is keyed by lineage: what is drafted, what is accepted, and what the target draws are
three streams of every node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from engine.models.base import Span, StatesModel
from engine.models.kv_tree import KvTree, Stem
from engine.models.sampling import Sampler
from engine.models.step_text import StepText
from engine.protocol import events
from engine.scheduling.node import Node, Strand
from engine.scheduling.settings import Counts
from engine.scheduling.strands import Strands
from engine.scheduling.tree import ReasoningTree
from engine.search.policy import Ending
from engine.semantic.judges import (
    ByMeaning,
    ByTokens,
    Distribution,
    Judging,
    distribution,
    instead,
    token_chance,
)

_DRAFTS, _VERDICTS = -1, -2
"""Streams of random numbers of a node, besides its own; no child has such a number."""


@dataclass(frozen=True, slots=True)
class Drafter:
    """The model that drafts, its cache, and how its drafts are judged."""

    model: StatesModel
    cache: KvTree
    judging: Judging


class _Phase(Enum):
    DRAFTING = "the draft model writes"
    READ = "a draft waits to be read"
    WRITING = "the target writes the rest of the step"


@dataclass(eq=False, slots=True)
class _Draft:
    """A drafted step, or some tokens of one."""

    sums: np.ndarray
    """The draft model's states, shape (layers, width)."""
    step: StepText
    """The text of the step so far, to tell where it ends."""
    tokens: list[int] = field(default_factory=list)
    distributions: list[Distribution] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class PairedStrand(Strand):
    """A sequence in both caches. `feed` is what the target computes next, if anything."""

    phase: _Phase
    pending: list[int]
    """Tokens that stand and that the target has not computed; the last one always is of them."""
    side: int | None = None
    """The path in the draft model's cache."""
    side_feed: list[int] = field(default_factory=list)
    drafts: list[_Draft] = field(default_factory=list)
    step: StepText = field(default_factory=StepText)
    """What the target writes."""
    logits: np.ndarray | None = None
    sums: np.ndarray | None = None

    @property
    def node(self) -> Node:
        return self.members[0]

    @property
    def drafted(self) -> int:
        return sum(len(draft.tokens) for draft in self.drafts)


class PairedStrands(Strands):
    """Writes nodes with two models, each by itself."""

    def __init__(
        self,
        model: StatesModel,
        cache: KvTree,
        tree: ReasoningTree,
        sampler: Sampler,
        counts: Counts,
        emit: Callable[[events.Event], None],
        spare: Callable[[], bool],
        drafter: Drafter,
    ) -> None:
        super().__init__(model, cache, tree, sampler, counts, emit, spare)
        self._target = model
        self._side = drafter.model
        self._side_cache = drafter.cache
        self._judging = drafter.judging
        self._read = False
        """Whether the draft model has read the prompt."""

    # -- what the scheduler asks ----------------------------------------------------------------

    def start(self, siblings: list[Node], *, keep: bool, draft: bool = False) -> bool:
        assert len(siblings) == 1, "siblings are written apart"
        if not super().start(siblings, keep=keep, draft=draft):
            return False
        plain = self._writing.pop()
        strand = PairedStrand(
            plain.path, [], plain.members, phase=_Phase.DRAFTING, pending=plain.feed
        )
        self._writing.append(strand)
        self._go_on(strand)
        return True

    def stop(self, nodes: Iterable[Node]) -> None:
        nodes = list(nodes)
        stopped = {id(node) for node in nodes}
        for strand in self._writing:
            if isinstance(strand, PairedStrand) and id(strand.node) in stopped:
                self._leave(strand)
        super().stop(nodes)

    def pop(self) -> Strand:
        strand = super().pop()
        assert isinstance(strand, PairedStrand)
        self._leave(strand)
        return strand

    def forget(self, stem: Stem) -> None:
        super().forget(stem)
        self._side_cache.forget(stem)

    def close(self) -> None:
        super().close()
        self._side_cache.forget_below(self._tree.root)

    def spans(self, strands: list[Strand]) -> list[Span]:
        return [span for strand in _paired(strands) for span in self._spans(strand)]

    def compute(self, strands: list[Strand], spans: list[Span]) -> np.ndarray:
        paired = _paired(strands)
        reading = [strand for strand in paired if strand.feed]
        self._draft([s for s in paired if s.phase is _Phase.DRAFTING])
        if not spans:
            return np.empty((0, self._model.vocabulary.size), np.float32)
        logits, sums = self._target.read(spans)
        row = place = 0
        for strand in reading:
            mine = self._spans(strand)
            count = sum(len(span.wanted) for span in mine)
            strand.logits = logits[row : row + count].copy()
            strand.sums = sums[place : place + len(mine)]
            row += count
            place += len(mine)
        return logits

    def draw(
        self, strands: list[Strand], logits: np.ndarray
    ) -> tuple[list[Node], list[list[Node]]]:
        finished: list[Node] = []
        for strand in _paired(strands):
            if strand.logits is None:
                continue
            if strand.phase is _Phase.WRITING:
                ending = self._write(strand, strand.logits[-1])
            elif isinstance(self._judging, ByTokens):
                ending = self._judge_tokens(strand)
            else:
                ending = self._judge_steps(strand, self._judging)
            strand.logits = strand.sums = None
            if ending is not None:
                self._writing.remove(strand)
                self._take_back(strand, but=1)  # who goes on computes the last token
                self.finish(strand.path, strand.members, ending)
                self._settle(strand, ending)
                finished.append(strand.node)
        return finished, []

    # -- drafting -------------------------------------------------------------------------------

    def _go_on(self, strand: PairedStrand) -> None:
        """Draft what follows, or let the target write it where there is no room for drafts."""
        strand.drafts = []
        strand.feed = []
        known = Stem(self._tree.stem_before(strand.node), tuple(strand.node.tokens))
        if strand.side is None:
            self._read_prompt()
            claimed = self._side_cache.claim(known) if self._read else None
            if claimed is not None:
                strand.side, _ = claimed
        if strand.side is None:
            self._leave(strand)
            return
        strand.side_feed = known.tail(self._side.length(strand.side))
        strand.phase = _Phase.DRAFTING
        step = StepText() if strand.node.whole else strand.node.stepping.copy()
        strand.drafts = [self._new_draft(step)]

    def _new_draft(self, step: StepText) -> _Draft:
        return _Draft(np.zeros((self._side.layers, self._side.width), np.float32), step)

    def _read_prompt(self) -> None:
        """Compute the prompt once for all drafts."""
        root = self._tree.root
        if self._read and self._side_cache.nearest(root) is not None:
            return
        if not self._side_cache.make_room(len(root.tokens)):
            return
        claimed = self._side_cache.claim(root)
        if claimed is None:
            return
        path, feed = claimed
        if len(feed) > 1:
            self._side.forward([Span((path,), feed[:-1], ())])
        self._side_cache.settle(path, root)
        self._read = True

    def _leave(self, strand: PairedStrand) -> None:
        """Draft no more; the target writes on from what stands."""
        if strand.side is not None:
            self._side_cache.drop(strand.side)
            strand.side = None
        strand.drafts = []
        strand.step = StepText()
        strand.phase = _Phase.WRITING
        strand.feed = strand.pending

    def _draft(self, strands: list[PairedStrand]) -> None:
        """One more token for each draft."""
        while strands and not self._side_cache.make_room(sum(len(s.side_feed) for s in strands)):
            self._leave(strands.pop())
        spans: list[Span] = []
        for strand in strands:
            assert strand.side is not None
            # The states that a token is drawn from are a span of their own.
            if len(strand.side_feed) > 1:
                spans.append(Span((strand.side,), strand.side_feed[:-1], ()))
            spans.append(Span((strand.side,), strand.side_feed[-1:]))
        if not spans:
            return
        logits, sums = self._side.read(spans)
        states = sums[[place for place, span in enumerate(spans) if span.wanted]]
        for strand, row, state in zip(strands, logits, states, strict=True):
            self._add(strand, row, state)

    def _add(self, strand: PairedStrand, logits: np.ndarray, state: np.ndarray) -> None:
        node, draft = strand.node, strand.drafts[-1]
        place = len(node.tokens) + strand.drafted
        uniform = self._tree.draws(node, _DRAFTS).uniform(place)
        if isinstance(self._judging, ByTokens):
            draft.distributions.append(distribution(self._sampler, logits))
        (token,) = self._sampler.draw(logits, [uniform])
        draft.sums += state
        draft.tokens.append(token)
        strand.side_feed = [token]
        self._counts.helper += 1
        ended = self._ends(node, draft.step, token, place + 1)
        if isinstance(self._judging, ByTokens):
            complete = ended or len(draft.tokens) == self._judging.length
        else:
            complete = ended or draft.step.ended
            if complete and not ended and len(strand.drafts) < self._judging.acceptance.ahead:
                strand.drafts.append(self._new_draft(StepText()))
                complete = False
        if complete:
            strand.phase = _Phase.READ
            strand.feed = strand.pending + [t for d in strand.drafts for t in d.tokens]
            if ended or isinstance(self._judging, ByMeaning):
                del strand.feed[-1]
            if isinstance(self._judging, ByMeaning):
                self._tell_drafted(strand)

    def _ends(self, node: Node, step: StepText, token: int, length: int) -> bool:
        """Whether a token, as the node's last of `length`, ends it; `step` takes it in."""
        if self._model.vocabulary.is_end(token):
            return True
        step.append(self._model.vocabulary.piece(token))
        return (
            (step.ended and not node.whole)
            or length >= node.limit
            or self._tree.stem_before(node).end + length >= self._tree.limits.context
        )

    def _tell_drafted(self, strand: PairedStrand) -> None:
        piece = self._model.vocabulary.piece
        end = self._model.vocabulary.is_end
        tokens = [token for draft in strand.drafts for token in draft.tokens]
        text = b"".join(piece(token) for token in tokens if not end(token))
        self._counts.steps_drafted += len(strand.drafts)
        self._emit(
            events.StepDrafted(lineage=strand.node.lineage, text=text.decode(errors="replace"))
        )

    # -- reading and writing --------------------------------------------------------------------

    def _spans(self, strand: PairedStrand) -> list[Span]:
        """What the target computes of a strand: where it reads, a span for each draft."""
        if not strand.feed:
            return []
        path = (strand.path,)
        if strand.phase is _Phase.WRITING:
            return [Span(path, strand.feed)]
        lead = len(strand.pending) - 1
        spans = [Span(path, strand.feed[:lead], ())] if lead else []
        start = lead
        for draft in strand.drafts:
            end = start + len(draft.tokens)
            if draft is strand.drafts[-1]:
                end = len(strand.feed)
            tokens = strand.feed[start:end]
            wanted = range(len(tokens)) if isinstance(self._judging, ByTokens) else (0,)
            spans.append(Span(path, tokens, wanted))
            start = end
        return spans

    def _judge_steps(self, strand: PairedStrand, judging: ByMeaning) -> Ending | None:
        node, drafts = strand.node, strand.drafts
        assert strand.sums is not None
        assert strand.logits is not None
        lengths = np.array([len(draft.tokens) for draft in drafts])[:, None, None]
        chances = judging.chances(
            np.stack([draft.sums for draft in drafts]) / lengths,
            strand.sums[-len(drafts) :] / lengths,
        )
        verdicts = self._tree.draws(node, _VERDICTS)
        for draft, chance, row in zip(drafts, chances, strand.logits, strict=True):
            accepted = verdicts.uniform(len(node.tokens)) < chance
            self._emit(
                events.DraftJudged(lineage=node.lineage, accepted=accepted, probability=chance)
            )
            if not accepted:
                self._take_back(strand)
                strand.step = StepText()
                strand.phase = _Phase.WRITING
                return self._write(strand, row)
            self._counts.steps_accepted += 1
            self._counts.accepted += len(draft.tokens)
            ending = self._append_all(node, draft.tokens)
            if ending is not None:
                return ending
        strand.pending = drafts[-1].tokens[-1:]
        self._go_on(strand)
        return None

    def _judge_tokens(self, strand: PairedStrand) -> Ending | None:
        node, (draft,) = strand.node, strand.drafts
        assert strand.logits is not None
        verdicts = self._tree.draws(node, _VERDICTS)
        theirs = [distribution(self._sampler, row) for row in strand.logits]
        for token, mine, target in zip(draft.tokens, draft.distributions, theirs, strict=False):
            place = len(node.tokens)
            if verdicts.uniform(place) >= token_chance(target, mine, token):
                token = instead(target, mine, node.draws.uniform(place))
                return self._correct(strand, token)
            self._counts.accepted += 1
            ending = self._append(token, [node])
            if ending is not None:
                return ending
        # All stand, and the target has computed one more.
        uniform = node.draws.uniform(len(node.tokens))
        return self._correct(strand, self._sampler.draw(strand.logits[-1], [uniform])[0])

    def _correct(self, strand: PairedStrand, token: int) -> Ending | None:
        """Add the target's token after those that stand, and draft on."""
        self._take_back(strand)
        strand.pending = [token]
        ending = self._append(token, [strand.node])
        if ending is None:
            self._go_on(strand)
        return ending

    def _write(self, strand: PairedStrand, logits: np.ndarray) -> Ending | None:
        """Add the target's next token to a step that it writes."""
        node = strand.node
        (token,) = self._sampler.draw(logits, [node.draws.uniform(len(node.tokens))])
        strand.pending = strand.feed = [token]
        ending = self._append(token, [node])
        if ending is None:
            strand.step.append(self._model.vocabulary.piece(token))
            if strand.step.ended:
                self._go_on(strand)
        return ending

    def _append_all(self, node: Node, tokens: list[int]) -> Ending | None:
        for token in tokens:
            ending = self._append(token, [node])
            if ending is not None:
                return ending
        return None

    def _take_back(self, strand: PairedStrand, but: int = 0) -> None:
        """Drop from both caches what does not stand, and the last `but` tokens of what does."""
        stands = self._tree.stem_before(strand.node).end + len(strand.node.tokens) - but
        self._target.shorten(strand.path, stands)
        if strand.side is not None:
            self._side.shorten(strand.side, stands)
        strand.drafts = []

    def _settle(self, strand: PairedStrand, ending: Ending) -> None:
        """A node is written: its draft's path may be gone on from."""
        stem = strand.node.stem
        if strand.side is None or stem is None:
            return
        if ending in (Ending.STEP, Ending.LENGTH):
            self._side_cache.settle(strand.side, stem)
        else:
            self._side_cache.drop(strand.side)
        strand.side = None


def _paired(strands: list[Strand]) -> list[PairedStrand]:
    return [strand for strand in strands if isinstance(strand, PairedStrand)]
