"""Drives one search: which paths are decoded now, when steps are verified, when groups are decided.

Every pass decodes one token of all strands in one batch. Finished steps are verified together, and
the policy decides a group once all of it is scored. Rows that finished paths leave free go to
drafts. Paths that do not fit into the cache wait; a path that has to leave comes back later with
the same tokens.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from engine.models.base import Span, StatesModel, TokenModel
from engine.models.kv_tree import KvTree, Stem
from engine.models.sampling import Sampler
from engine.protocol import events
from engine.scheduling.node import Node, Strand
from engine.scheduling.paired import Drafter, PairedStrands
from engine.scheduling.past import Past
from engine.scheduling.settings import EXACT, Counts, Limits, Mode
from engine.scheduling.shortcuts import inherit, perfect
from engine.scheduling.speculation import Speculation
from engine.scheduling.step_times import StepTimes
from engine.scheduling.strands import Strands
from engine.scheduling.tree import OpenGroup, ReasoningTree
from engine.scheduling.verification import Verification
from engine.scheduling.waiting import Waiting
from engine.search.policy import Candidate, Ending, Group, Lineage, Policy
from engine.verify.prm import Prm

Emit = Callable[[events.Event], None]


@dataclass(frozen=True, slots=True)
class Batch:
    """What a search wants decoded in the next pass."""

    spans: list[Span]
    strands: list[Strand]

    @property
    def tokens(self) -> int:
        return sum(len(span.tokens) for span in self.spans)


class Scheduler:
    """Runs a policy to its end.

    Args:
        prompt: tokens that every path starts with.
        emit: receives the events of the tree as they happen.
        past: nodes finished before an interruption; they are not computed again.
        mode: how to run the search; only named modes with shortcuts change what it finds.
        clock: seconds, to measure passes by.
        cache: the generator's cache, if other searches use it too.
        drafter: writes steps for the generator to judge. The generator then gives its states, and
            the mode neither drafts nor writes equal siblings once.
    """

    def __init__(
        self,
        generator: TokenModel,
        verifier: Prm | None,
        policy: Policy,
        sampler: Sampler,
        *,
        prompt: Sequence[int],
        seed: int,
        limits: Limits,
        emit: Emit,
        past: Past,
        mode: Mode = EXACT,
        clock: Callable[[], float] = time.perf_counter,
        cache: KvTree | None = None,
        drafter: Drafter | None = None,
    ) -> None:
        how = mode.mechanisms
        self._generator = generator
        self._policy = policy
        self._emit = emit
        self._past = past
        self._deduplicate = how.deduplicate
        self._shortcuts = mode.shortcuts
        self._clock = clock
        self._cache = cache or KvTree(generator)
        self._tree = ReasoningTree(prompt, seed, limits)
        self._waiting = Waiting(how.prefix_order)
        self._begun = False
        self._step_times = StepTimes()
        self.counts = Counts()
        self._verification = (
            Verification(verifier, how, emit, clock) if verifier and policy.guided else None
        )
        self._speculation = Speculation(
            policy,
            how,
            past,
            self._tree,
            self._cache,
            self.counts,
            self._step_times,
            self._verification,
            emit,
        )
        shared = (self._cache, self._tree, sampler, self.counts, emit, self._spare)
        self.apart = drafter is not None
        """Whether its passes are not to be computed together with those of other searches."""
        self._strands = (
            Strands(generator, *shared)
            if drafter is None
            else PairedStrands(cast(StatesModel, generator), *shared, drafter)
        )

    @property
    def beams(self) -> int:
        """Paths being written now."""
        return sum(len(strand.members) for strand in self._strands)

    @property
    def completed(self) -> list[Candidate]:
        """Completions by group key, then round, then the policy's order."""
        return self._tree.completed

    @property
    def done(self) -> bool:
        return self._begun and not self._tree.groups

    def frontier(self) -> list[Candidate]:
        """Finished nodes that nothing was built on yet; what there is when time runs out."""
        return self._tree.frontier()

    def run(self) -> Iterator[None]:
        """Do the search, yielding after every pass, when the caller may stop it for good."""
        while not self.done:
            self.advance()
            self.settle()
            yield

    def advance(self) -> None:
        """Do a pass by itself."""
        batch = self.prepare()
        if batch is not None:
            before = self._clock()
            logits = self._strands.compute(batch.strands, batch.spans)
            self.accept(batch, logits, self._clock() - before)

    def prepare(self) -> Batch | None:
        """Choose who is decoded in the next pass, and make sure that it fits.

        Returns:
            None if there is nothing to decode, or no room while other searches go on.
        """
        if not self._begun and not self._begin():
            return None
        evicted = self._cache.evicted_tokens
        batch = self._prepare()
        self.counts.evicted += self._cache.evicted_tokens - evicted
        return batch

    def _prepare(self) -> Batch | None:
        self._admit()
        if not self._waiting:
            self._speculation.start(self._strands)
        strands = self._speculation.chosen(self._strands)
        while strands and not self._cache.make_room(
            sum(len(s.feed) for s in strands), evict=not self._strands.drafting
        ):
            if not self._spare():
                self._preempt()
            strands = self._speculation.chosen(self._strands)
        if not strands:
            return None
        return Batch(self._strands.spans(strands), strands)

    def accept(self, batch: Batch, logits: np.ndarray, seconds: float, rows: int = 0) -> None:
        """Draw a token for every node that a pass has computed.

        Args:
            logits: shape (spans of the batch, vocabulary).
            seconds: what the pass took.
            rows: of the whole pass, if that served other searches too.
        """
        own = len(batch.strands)
        typical = batch.tokens == own
        before = self._clock()
        finished, homeless = self._strands.draw(batch.strands, logits)
        if typical:
            # A row costs its draws as well; those of other searches' rows are taken to be alike.
            drawing = (self._clock() - before) * (rows or own) / own
            self._step_times.record(rows or own, seconds + drawing)
        self.counts.decode_steps += 1
        self._tell_waiting(own, seconds)
        if finished:
            self._speculation.changed()
        for node in finished:
            if not node.draft:
                self._want_scores(node)
        for members in homeless:
            if members[0].draft:
                self._speculation.drop(members, self._strands)
            else:
                self._wait(members, first=True)

    def settle(self) -> None:
        """Verify and decide what is ready."""
        while True:
            if self._verification is not None:
                drafts = (node for _, node in self._speculation.drafts.finished())
                writing = len(self._strands.certain)
                if self._verification.verify(self._tree, writing, drafts):
                    self._speculation.changed()
            if self._shortcuts.perfect is not None:
                self._cut_short(self._shortcuts.perfect)
            ready = [opened for opened in self._tree.groups if self._is_ready(opened)]
            if not ready:
                return
            for opened in ready:
                self._decide(opened)

    def speculate(self, allowed: bool) -> None:
        """Draft, if the mode says so, or drop all drafts at once because others need the rows."""
        self._speculation.allowed = allowed
        while not allowed and self._spare():
            pass

    def close(self) -> None:
        """Leave nothing in the caches."""
        self._strands.close()
        if self._verification is not None:
            self._verification.close()

    # -- opening and admitting ------------------------------------------------------------------

    def _begin(self) -> bool:
        """Compute the prompt once for all paths and open the first groups.

        Returns:
            False if other searches leave no room for it now.
        """
        root = self._tree.root
        if not self._cache.make_room(self._cache.missing(root)) and not self._cache.alone(0):
            return False
        claimed = self._cache.claim(root)
        if claimed is None:
            return False
        path, feed = claimed
        if len(feed) > 1:
            self._emit(events.Phase(name="prefill", model=self._generator.name))
            # The last token is left to each path, which draws from what follows it.
            before = self._clock()
            self._generator.forward([Span((path,), feed[:-1], ())])
            if self._cache.copies is not None:
                self._cache.copies.computed(len(feed) - 1, self._clock() - before)
            self.counts.prefill += len(feed) - 1
        self._cache.settle(path, root)
        self._emit(events.Phase(name="searching"))
        self._open(self._policy.start())
        self._begun = True
        return True

    def _open(self, groups: Sequence[Group]) -> None:
        promoted: list[Node] = []
        for group in groups:
            nodes: list[Node] = []
            families: dict[Lineage, list[Node]] = defaultdict(list)
            for fresh in self._tree.fresh(group):
                draft = self._speculation.drafts.promote(fresh.lineage, fresh.limit, fresh.whole)
                nodes.append(draft or fresh)
                if draft is not None:
                    promoted.append(draft)
                    if draft.ending is not None:
                        self._want_scores(draft)
                elif not self._remember(fresh):
                    self._inherit(fresh, nodes)
                    families[fresh.lineage[:-1]].append(fresh)
            self._tree.add(group, nodes)
            self.counts.nodes += len(nodes)
            for family in families.values():
                for siblings in [family] if self._deduplicate else [[node] for node in family]:
                    self._wait(siblings)
        if promoted:
            self._emit(events.DraftsPromoted(lineages=tuple(node.lineage for node in promoted)))

    def _tell_waiting(self, rows: int, seconds: float) -> None:
        """A pass went by; scores would have told which drafts to write in it."""
        scoring = self._verification
        if scoring and scoring.waits and self._speculation.would_use_scores(rows):
            scoring.wrote(seconds, self._tree.rows)

    def _want_scores(self, node: Node) -> None:
        if self._verification is not None and node.scores is None:
            self._verification.add(node)

    def _remember(self, node: Node) -> bool:
        """Take a node's content from the past, if it is there."""
        known = self._past.nodes.get(node.lineage)
        if known is None:
            return False
        node.opened = True
        node.tokens = list(known.tokens)
        node.text = known.text
        node.ending = known.ending
        if known.ending is Ending.LENGTH:  # the next step may go on in the middle of a character
            for token in known.tokens:
                node.stepping.append(self._generator.vocabulary.piece(token))
        node.stem = Stem(self._tree.stem_before(node), known.tokens)
        if self._verification is not None and known.scores is not None:
            self._verification.adopt(node, known.scores)
        else:
            self._want_scores(node)
        return True

    def _inherit(self, node: Node, siblings: Sequence[Node]) -> None:
        if self._shortcuts.inherit is None:
            return
        for sibling in siblings:
            if sibling.lineage == (*node.lineage[:-1], 0):
                inherit(node, sibling, self._shortcuts.inherit, self._generator.vocabulary)

    def _wait(self, siblings: list[Node], *, first: bool = False) -> None:
        self._waiting.add(siblings, self._tree.stem_before(siblings[0]), first=first)

    def _admit(self) -> None:
        """Start those who wait, as far as there is room; drafts make room for them."""
        while self._waiting:
            siblings = self._waiting.next()
            if self._strands.start(siblings, keep=self._waiting.shares_start()):
                self._waiting.started()
            elif not self._spare():
                self._cache.expect(self._waiting.stems())
                return

    def _spare(self) -> bool:
        return self._speculation.drop_least(self._strands)

    def _preempt(self) -> None:
        """The cache is full of what is being written: the last strand waits, and is dropped.

        A strand that is alone and still does not fit has met the end of its context.
        """
        alone = self._cache.alone(1)
        members = self._strands.pop().members
        if alone:
            self._strands.finish(None, members, Ending.CONTEXT)
            self._speculation.changed()
            for node in members:
                self._want_scores(node)
        else:
            self._wait(members, first=True)

    # -- deciding -------------------------------------------------------------------------------

    def _is_ready(self, opened: OpenGroup) -> bool:
        return opened.written and (self._verification is None or opened.scored)

    def _cut_short(self, score: float) -> None:
        """End rounds in which enough nodes are perfect; the rest of them is given up."""
        for opened in self._tree.groups:
            scored = [node.candidate() for node in opened.nodes if node.scores is not None]
            completed = self._tree.completed_in(opened.group)
            outlook = self._policy.outlook(opened.group, scored, completed)
            if kept := perfect(opened, outlook, score):
                rest = [node for node in opened.nodes if node not in kept]
                self._strands.stop(node for node in rest if node.ending is None)
                self._waiting.remove(rest)
                if self._verification is not None:
                    self._verification.remove(rest)
                self._emit(
                    events.NodesPruned(
                        round=opened.group.round,
                        lineages=tuple(node.lineage for node in rest),
                        reason=f"{len(kept)} others are as good as can be",
                    )
                )
                opened.nodes = kept
                self._speculation.decided(rest, self._strands)
                self._release(rest, ())

    def _decide(self, opened: OpenGroup) -> None:
        group = opened.group
        candidates = [node.candidate() for node in opened.nodes]
        decision = self._policy.decide(group, candidates, self._tree.completed_in(group))
        self._tree.close(opened, decision)
        if decision.pruned:
            self._emit(
                events.NodesPruned(
                    round=group.round,
                    lineages=decision.pruned,
                    reason=_reason(len(decision.kept), len(candidates)),
                )
            )
        self._emit(
            events.BeamsSelected(
                round=group.round, kept=decision.kept, completed=decision.completed
            )
        )
        self._open(decision.next)
        self._speculation.decided(opened.nodes, self._strands)
        self._release(opened.nodes, decision.next)

    def _release(self, nodes: Sequence[Node], following: Sequence[Group]) -> None:
        """Forget the caches of nodes that nothing will be built on."""
        ahead = {branch.parent for group in following for branch in group.branches}
        gone = [node for node in nodes if node.lineage not in ahead]
        # Equal siblings share their stems: one that goes on keeps them for all.
        live = {id(node.stem) for node in nodes if node.lineage in ahead}
        live |= {id(node.stem) for node in self._tree.finished()}
        parents = {id(node.parent): node.parent for node in nodes if node.parent is not None}
        for node in parents.values():
            if node.stem is not None:
                self._strands.forget(node.stem)  # the children's own paths hold its cells
        for node in gone:
            if node.stem is not None and id(node.stem) not in live:
                self._strands.forget(node.stem)
        if self._verification is not None:
            self._verification.release([*parents.values(), *gone])


def _reason(kept: int, candidates: int) -> str:
    return f"not among the best {kept} of {candidates}" if kept else "the search ended"
