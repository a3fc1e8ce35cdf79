"""Drives one search: which paths are decoded now, when steps are verified, when groups are decided.

Every pass decodes one token of all strands in one batch. Finished steps are verified together, and
the policy decides a group once all of it is scored. Rows that finished paths leave free go to
drafts. Paths that do not fit into the cache wait; a path that has to leave comes back later with
the same tokens.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from engine.models.base import Span, TokenModel
from engine.models.kv_tree import KvTree, Stem
from engine.models.sampling import Sampler
from engine.protocol import events
from engine.scheduling.drafts import Drafts
from engine.scheduling.node import Node, Strand
from engine.scheduling.past import Past
from engine.scheduling.prospects import Prospect, Prospects
from engine.scheduling.settings import EXACT, Counts, Limits, Mode
from engine.scheduling.step_times import StepTimes
from engine.scheduling.tree import OpenGroup, ReasoningTree
from engine.scheduling.verification import Verification
from engine.scheduling.waiting import Waiting
from engine.search.policy import Candidate, Ending, Group, Lineage, Policy
from engine.verify.prm import Prm

Emit = Callable[[events.Event], None]

_HEADROOM = 32
"""Cells a path should find free beyond its own tokens before it starts or starts again."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What a search wants decoded in the next pass."""

    spans: list[Span]
    strands: list[Strand]


class Scheduler:
    """Runs a policy to its end.

    Args:
        prompt: tokens that every path starts with.
        emit: receives the events of the tree as they happen.
        past: nodes finished before an interruption; they are not computed again.
        mode: how to run the search; only named modes with shortcuts change what it finds.
        clock: seconds, to measure passes by.
        cache: the generator's cache, if other searches use it too.
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
    ) -> None:
        how = mode.mechanisms
        self._generator = generator
        self._policy = policy
        self._sampler = sampler
        self._emit = emit
        self._past = past
        self._mechanisms = how
        self._shortcuts = mode.shortcuts
        self._clock = clock
        self._cache = cache or KvTree(generator)
        self._tree = ReasoningTree(prompt, seed, limits)
        self._waiting = Waiting(how.prefix_order)
        self._strands: list[Strand] = []
        self._drafts = Drafts()
        self._prospects = Prospects(policy, how)
        self._ranked: list[Prospect] | None = None
        """What is worth drafting; None when something changed since it was found out."""
        self._short = False
        """Whether drafts had to leave for want of memory since the last decision."""
        self._step_times = StepTimes()
        self._verification = (
            Verification(verifier, how, emit, clock) if verifier and policy.guided else None
        )
        self.speculates = how.drafts
        self.counts = Counts()

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
        return not self._tree.groups

    def frontier(self) -> list[Candidate]:
        """Finished nodes that nothing was built on yet; what there is when time runs out."""
        return self._tree.frontier()

    def run(self) -> Iterator[None]:
        """Do the search, yielding after every pass, when the caller may stop it for good."""
        self.begin()
        while not self.done:
            batch = self.prepare()
            if batch is not None:
                before = self._clock()
                rows = self._generator.forward(batch.spans)
                self.accept(batch, rows, self._clock() - before)
            self.settle()
            yield

    def begin(self) -> bool:
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
            self._generator.forward([Span((path,), feed[:-1], ())])
            self.counts.prefill += len(feed) - 1
        self._cache.settle(path, root)
        self._emit(events.Phase(name="searching"))
        self._open(self._policy.start())
        return True

    def prepare(self) -> Batch | None:
        """Choose who is decoded in the next pass, and make sure that it fits."""
        self._admit()
        if self.speculates and not self._waiting and not self._short:
            self._speculate()
        strands = self._chosen()
        while strands and not self._cache.make_room(sum(len(s.feed) for s in strands)):
            if not self._drop_least_draft():
                self._preempt()
            strands = self._chosen()
        if not strands:
            return None
        return Batch([Span((strand.path,), strand.feed) for strand in strands], strands)

    def accept(self, batch: Batch, logits: np.ndarray, seconds: float, rows: int = 0) -> None:
        """Draw a token for every node that a pass has computed.

        Args:
            logits: shape (spans of the batch, vocabulary).
            seconds: what the pass took.
            rows: of the whole pass, if that served other searches too.
        """
        strands = batch.strands
        if all(len(strand.feed) == 1 for strand in strands):
            self._step_times.record(rows or len(strands), seconds)
        self.counts.decode_steps += 1
        if self._verification is not None and self.speculates:
            self._verification.wrote(seconds, self._tree.rows)
        computed = {id(strand) for strand in strands}
        self._strands = [strand for strand in self._strands if id(strand) not in computed]
        for strand, row in zip(strands, logits, strict=True):
            uniforms = [node.draws.uniform(len(node.tokens)) for node in strand.members]
            agreeing: dict[int, list[Node]] = defaultdict(list)
            for node, token in zip(
                strand.members, self._sampler.draw(row, uniforms), strict=True
            ):
                agreeing[token].append(node)
            paths = self._split(strand, len(agreeing))
            for (token, members), path in zip(agreeing.items(), paths, strict=True):
                self._append(path, token, members)

    def settle(self) -> None:
        """Verify and decide what is ready."""
        while True:
            writing = sum(not strand.draft for strand in self._strands)
            if self._verification is not None:
                drafts = [node for _, node in self._drafts.finished()]
                if self._verification.verify(self._tree, writing, drafts):
                    self._ranked = None
            ready = [opened for opened in self._tree.groups if self._is_ready(opened)]
            if not ready:
                return
            for opened in ready:
                self._decide(opened)

    def hush(self) -> None:
        """Drop all drafts that are written and start no more: others need the rows."""
        self.speculates = False
        while self._drop_least_draft():
            pass

    # -- opening and admitting ------------------------------------------------------------------

    def _open(self, groups: Sequence[Group]) -> list[Node]:
        """Open groups; returns those of their nodes that were drafts."""
        promoted: list[Node] = []
        for group in groups:
            nodes: list[Node] = []
            families: dict[Lineage, list[Node]] = defaultdict(list)
            for fresh in self._tree.fresh(group):
                draft = self._drafts.promote(fresh.lineage, fresh.limit, fresh.whole)
                nodes.append(draft or fresh)
                if draft is not None:
                    promoted.append(draft)
                    if draft.ending is not None:
                        self._want_scores(draft)
                elif not self._remember(fresh):
                    families[fresh.lineage[:-1]].append(fresh)
            self._tree.add(group, nodes)
            self.counts.nodes += len(nodes)
            for family in families.values():
                for siblings in self._strands_for(family):
                    self._waiting.add(siblings, self._tree.stem_before(siblings[0]))
        self._ranked = None
        if promoted:
            self._emit(events.DraftsPromoted(lineages=tuple(node.lineage for node in promoted)))
        return promoted

    def _strands_for(self, family: list[Node]) -> list[list[Node]]:
        return [family] if self._mechanisms.deduplicate else [[node] for node in family]

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

    def _admit(self) -> None:
        """Start those who wait, as far as there is room; drafts make room for them."""
        while self._waiting:
            siblings = self._waiting.next()
            if self._start(siblings, keep=self._waiting.shares_start()):
                self._waiting.started()
            elif not self._drop_least_draft():
                self._cache.expect(self._waiting.stems())
                return

    def _start(self, siblings: list[Node], *, keep: bool, draft: bool = False) -> bool:
        """Begin or go on writing some siblings. False when there is no room for them now.

        Args:
            keep: others will start from the same parent.
            draft: nothing has to leave the cache for it.
        """
        first = siblings[0]
        stem = self._tree.stem_before(first)
        if first.tokens:
            stem = Stem(stem, tuple(first.tokens))
        writing = sum(len(strand.feed) for strand in self._strands)
        headroom = _HEADROOM * (len(self._strands) + 1) if self._strands else 0
        needed = writing + self._cache.missing(stem) + headroom
        if not self._cache.make_room(needed, evict=not draft) and not self._cache.alone(0):
            return False
        claimed = self._cache.claim(stem, keep=keep, evict=not draft)
        if claimed is None:
            return False
        path, feed = claimed
        self.counts.prefill += len(feed) - 1
        self.counts.recomputed += len(feed) - 1
        for node in siblings:
            if not node.opened:
                node.opened = True
                self._emit(events.NodeOpened(lineage=node.lineage))
        self._strands.append(Strand(path, feed, siblings))
        return True

    # -- drafting -------------------------------------------------------------------------------

    def _rank(self) -> list[Prospect]:
        """What may be drafted from, best first. What is lost for good is drafted no more."""
        while self._ranked is None:
            self._ranked = self._prospects.rank(self._tree, self._drafts)
            self._drop_drafts(self._drafts.below(self._prospects.lost))  # if any, rank again
        return self._ranked

    def _chances(self) -> dict[Lineage, float]:
        return {p.node.lineage: p.chance for p in self._rank()} if len(self._drafts) else {}

    def _speculate(self) -> None:
        """Give rows that finished paths left free to the next steps of the likeliest survivors."""
        rows = self._tree.rows - sum(not strand.draft for strand in self._strands)
        if rows <= 0:
            return
        ranked = self._rank()
        chances = self._chances()
        drafting = sorted(
            (chances.get(s.members[0].lineage[:-1], 0.0) for s in self._strands if s.draft),
            reverse=True,
        )
        for prospect in ranked:
            better = sum(chance >= prospect.chance for chance in drafting)
            for siblings, group in self._undrafted(prospect):
                if better >= rows or not self._start(siblings, keep=True, draft=True):
                    return
                self._drafts.add(prospect.node.lineage, group, siblings)
                better += 1

    def _undrafted(self, prospect: Prospect) -> Iterator[tuple[list[Node], Group]]:
        """The children of a node that should be drafted and are not yet."""
        lineage = prospect.node.lineage
        following = self._policy.follow(prospect.group, lineage)
        if following is None or any(b.lineage in self._past.nodes for b in following.branches):
            return
        wanted = following.branches[: prospect.branches]
        missing = tuple(b for b in wanted if self._drafts.of_name(b.lineage) is None)
        if missing and (prospect.sure or self._pays(prospect.chance)):
            nodes = self._tree.fresh(replace(following, branches=missing), prospect.node)
            for siblings in self._strands_for(nodes):
                yield siblings, following

    def _pays(self, chance: float) -> bool:
        return not self._mechanisms.only_if_it_pays or self._step_times.extra_row_pays(
            max(1, len(self._strands)), chance
        )

    def _drop_least_draft(self) -> bool:
        """Drop the least likely of the drafts that are being written. False if there is none."""
        drafting = [strand for strand in self._strands if strand.draft]
        if not drafting:
            return False
        chances = self._chances()
        least = min(drafting, key=lambda s: chances.get(s.members[0].lineage[:-1], 0.0))
        self._short = True
        return self._drop_drafts(least.members)

    def _drop_drafts(self, nodes: Sequence[Node]) -> bool:
        """Forget drafts and what the cache holds for them alone. False if there are none."""
        if not nodes:
            return False
        nodes = [*nodes, *self._drafts.below(node.lineage for node in nodes)]
        self._drafts.forget(nodes)
        self._stop_writing(nodes)
        kept = {id(node.stem) for _, node in self._tree.waiting_for_decision()}
        for node in nodes:
            self.counts.dropped += len(node.tokens)
            if node.stem is not None and id(node.stem) not in kept:
                self._cache.forget(node.stem)
        if self._verification is not None:
            self._verification.release(nodes)
        self._ranked = None
        self._emit(events.DraftsDropped(lineages=tuple(node.lineage for node in nodes)))
        return True

    def _stop_writing(self, nodes: Iterable[Node]) -> None:
        stopped = {id(node) for node in nodes}
        strands, self._strands = self._strands, []
        for strand in strands:
            strand.members = [node for node in strand.members if id(node) not in stopped]
            if strand.members:
                self._strands.append(strand)
            else:
                self._cache.drop(strand.path)

    # -- decoding -------------------------------------------------------------------------------

    def _chosen(self) -> list[Strand]:
        """The strands of the next pass: all that are certain, and drafts in the rows left over.

        Drafts never make the batch larger than the search itself would; those that find no row
        pause.
        """
        certain = [strand for strand in self._strands if not strand.draft]
        drafting = [strand for strand in self._strands if strand.draft]
        if len(drafting) > self._tree.rows - len(certain):
            chances = self._chances()
            drafting.sort(key=lambda s: -chances.get(s.members[0].lineage[:-1], 0.0))
        return certain + drafting[: max(0, self._tree.rows - len(certain))]

    def _split(self, strand: Strand, count: int) -> list[int | None]:
        """The strand's path and copies of it; None where every path is taken."""
        paths: list[int | None] = [strand.path]
        for _ in range(count - 1):
            copy = self._cache.new_path(evict=not strand.draft)
            while copy is None and not strand.draft and self._drop_least_draft():
                copy = self._cache.new_path()
            if copy is not None:
                self._generator.fork(strand.path, copy)
            paths.append(copy)
        return paths

    def _append(self, path: int | None, token: int, members: list[Node]) -> None:
        """Add a drawn token to nodes that agree, and go on or finish them."""
        vocabulary = self._generator.vocabulary
        self.counts.generated += len(members)
        self.counts.drafted += len(members) if members[0].draft else 0
        end = vocabulary.is_end(token)
        piece = b"" if end else vocabulary.piece(token)
        for node in members:
            node.tokens.append(token)
            text = node.stepping.append(piece)
            if text:
                node.text += text
                self._emit(events.TextAppended(lineage=node.lineage, text=text))
        ending = self._ending(members[0], end)
        if ending is not None:
            self._finish(path, members, ending)
        elif path is not None:
            self._strands.append(Strand(path, [token], members))
        elif members[0].draft:
            self._drop_drafts(members)
        else:
            self._waiting.add(members, self._tree.stem_before(members[0]), first=True)

    def _ending(self, node: Node, end: bool) -> Ending | None:
        if end:
            return Ending.END
        if self._tree.stem_before(node).end + len(node.tokens) >= self._tree.limits.context:
            return Ending.CONTEXT
        if node.stepping.ended and not node.whole:
            return Ending.STEP
        if len(node.tokens) >= node.limit:
            return Ending.LENGTH
        return None

    def _finish(self, path: int | None, members: list[Node], ending: Ending) -> None:
        stem = Stem(self._tree.stem_before(members[0]), tuple(members[0].tokens))
        if path is not None:
            if ending in (Ending.STEP, Ending.LENGTH):
                self._cache.settle(path, stem)
            else:
                self._cache.drop(path)
        self._ranked = None
        for node in members:
            # Where a path can go on, its next node completes the character.
            rest = "" if ending is Ending.LENGTH else node.stepping.finish()
            if rest:
                node.text += rest
                self._emit(events.TextAppended(lineage=node.lineage, text=rest))
            node.stem = stem
            node.ending = ending
            self._emit(
                events.StepFinished(
                    lineage=node.lineage,
                    text=node.text,
                    tokens=tuple(node.tokens),
                    ending=ending.value,
                )
            )
            if not node.draft:
                self._want_scores(node)

    def _preempt(self) -> None:
        """The cache is full of what is being written: the last strand waits, and is dropped.

        A strand that is alone and still does not fit has met the end of its context.
        """
        strand = self._strands.pop()
        alone = self._cache.alone(1)
        self._cache.drop(strand.path)
        if alone:
            self._finish(None, strand.members, Ending.CONTEXT)
        else:
            before = self._tree.stem_before(strand.members[0])
            self._waiting.add(strand.members, before, first=True)

    # -- deciding -------------------------------------------------------------------------------

    def _is_ready(self, opened: OpenGroup) -> bool:
        return opened.written and (self._verification is None or opened.scored)

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
        self._short = False
        promoted = {node.lineage for node in self._open(decision.next)}
        decided = [node.lineage for node in opened.nodes]
        self._drop_drafts(
            [
                node
                for node in self._drafts.below(decided)
                if not any(node.lineage[:depth] in promoted for depth in range(len(node.lineage)))
            ]
        )
        self._drafts.close(decided)
        self._release(opened.nodes, decision.next)

    def _release(self, nodes: Sequence[Node], following: Sequence[Group]) -> None:
        """Forget the caches of nodes that nothing will be built on."""
        ahead = {branch.parent for group in following for branch in group.branches}
        gone = [node for node in nodes if node.lineage not in ahead]
        # Equal siblings share their stems: one that goes on keeps them for all.
        live = {id(node.stem) for node in nodes if node.lineage in ahead}
        parents = {id(node.parent): node.parent for node in nodes if node.parent is not None}
        for node in parents.values():
            if node.stem is not None:
                self._cache.forget(node.stem)  # the children's own paths hold its cells
        for node in gone:
            if node.stem is not None and id(node.stem) not in live:
                self._cache.forget(node.stem)
        if self._verification is not None:
            self._verification.release([*parents.values(), *gone])


def _reason(kept: int, candidates: int) -> str:
    return f"not among the best {kept} of {candidates}" if kept else "the search ended"
