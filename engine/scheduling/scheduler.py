"""Drives one search: which paths are decoded now, when steps are verified, when groups are decided.

Every pass decodes one token of all strands in one batch. Finished steps wait until their group is
complete, are verified together, and the policy decides the group. Paths that do not fit into the
cache wait; a path that has to leave is computed again later, with the same tokens.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from engine.models.base import Span, TokenModel
from engine.models.kv_tree import KvTree, Stem
from engine.models.sampling import Draws, Sampler
from engine.models.step_text import StepText
from engine.protocol import events
from engine.scheduling.drafts import Drafts, potential
from engine.scheduling.node import Node, Strand
from engine.scheduling.past import Past
from engine.scheduling.settings import DEFAULT, Counts, Limits, Mechanisms
from engine.scheduling.step_times import StepTimes
from engine.search.policy import Candidate, Ending, Group, Lineage, Policy
from engine.verify.prm import Judged, Prm

Emit = Callable[[events.Event], None]

_VERIFY_BATCH = 64
"""While more paths are still written than wait, verify once this many tokens wait."""
_HEADROOM = 32
"""Cells a path should find free beyond its own tokens before it starts or starts again."""


@dataclass(eq=False, slots=True)
class _OpenGroup:
    group: Group
    nodes: list[Node]


class Scheduler:
    """Runs a policy to its end.

    Args:
        prompt: tokens that every path starts with.
        emit: receives the events of the tree as they happen.
        past: nodes finished before an interruption; they are not computed again.
        clock: seconds, to measure steps by.
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
        mechanisms: Mechanisms = DEFAULT,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._generator = generator
        self._verifier = verifier if policy.guided else None
        self._policy = policy
        self._sampler = sampler
        self._seed = seed
        self._limits = limits
        self._emit = emit
        self._past = past
        self._mechanisms = mechanisms
        self._clock = clock
        self._step_times = StepTimes()
        self._drafts = Drafts()
        self._tree = KvTree(generator)
        self._root = Stem(None, tuple(prompt))
        self._nodes: dict[Lineage, Node] = {}
        self._groups: list[_OpenGroup] = []
        self._waiting: deque[list[Node]] = deque()
        """Siblings with equal tokens so far, to be written by one strand when there is room."""
        self._starts: Counter[Stem] = Counter()
        """How many of those start from a stem."""
        self._strands: list[Strand] = []
        self._unscored: list[Node] = []
        self._completed: dict[Lineage, list[tuple[int, Candidate]]] = defaultdict(list)
        self.counts = Counts()

    @property
    def beams(self) -> int:
        """Paths being written now."""
        return sum(len(strand.members) for strand in self._strands)

    @property
    def completed(self) -> list[Candidate]:
        """Completions by group key, then round, then the policy's order."""
        return [c for key in sorted(self._completed) for _, c in self._completed[key]]

    def frontier(self) -> list[Candidate]:
        """Finished nodes that nothing was built on yet; what there is when time runs out."""
        parents = {id(node.parent) for node in self._nodes.values()}
        return [
            node.candidate()
            for _, node in sorted(self._nodes.items())
            if node.ending is not None and id(node) not in parents
        ]

    def run(self) -> Iterator[None]:
        """Do the search, yielding after every pass, when the caller may stop it for good."""
        self._prefill()
        self._emit(events.Phase(name="searching"))
        self._open(self._policy.start())
        while self._groups:
            self._admit()
            if self._strands:
                self._decode()
            self._verify()
            self._decide()
            yield

    # -- opening and admitting ------------------------------------------------------------------

    def _prefill(self) -> None:
        """Compute the prompt once for all paths, save its last token, which each path feeds."""
        claimed = self._tree.claim(self._root)
        assert claimed is not None
        path, feed = claimed
        if len(feed) > 1:
            self._emit(events.Phase(name="prefill", model=self._generator.name))
            self._generator.forward([Span((path,), feed[:-1], ())])
            self.counts.prefill += len(feed) - 1
        self._tree.settle(path, self._root)

    def _open(self, groups: Sequence[Group]) -> None:
        promoted: list[Lineage] = []
        for group in groups:
            nodes: list[Node] = []
            families: dict[Lineage, list[Node]] = defaultdict(list)
            for fresh in self._nodes_of(group):
                draft = self._drafts.promote(fresh.lineage, fresh.limit, fresh.whole)
                node = draft or fresh
                nodes.append(node)
                if draft is not None:
                    promoted.append(node.lineage)
                    if node.ending is not None and self._verifier is not None:
                        self._unscored.append(node)
                elif not self._remember(node):
                    families[node.lineage[:-1]].append(node)
            self._groups.append(_OpenGroup(group, nodes))
            self._nodes.update((node.lineage, node) for node in nodes)
            self.counts.nodes += len(nodes)
            for family in families.values():
                for siblings in self._strands_for(family):
                    self._wait(siblings)
        if promoted:
            self._emit(events.DraftsPromoted(lineages=tuple(promoted)))

    def _nodes_of(self, group: Group) -> list[Node]:
        limit = min(group.step_tokens or self._limits.step, self._limits.step)
        nodes: list[Node] = []
        for branch in group.branches:
            parent = self._nodes.get(branch.parent)
            text = StepText(parent.stepping.incomplete if parent else b"")
            draws = Draws(self._seed, branch.lineage)
            nodes.append(Node(branch.lineage, parent, draws, limit, group.whole, stepping=text))
        return nodes

    def _strands_for(self, family: list[Node]) -> list[list[Node]]:
        return [family] if self._mechanisms.deduplicate else [[node] for node in family]

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
        node.stem = Stem(self._parent_stem(node), known.tokens)
        if self._verifier is not None:
            if known.scores is None:
                self._unscored.append(node)
            else:
                node.scores = known.scores
                node.judged = self._verifier.adopt(
                    self._judged_parent(node), node.steps, known.scores
                )
        return True

    def _parent_stem(self, node: Node) -> Stem:
        if node.parent is None:
            return self._root
        assert node.parent.stem is not None
        return node.parent.stem

    def _admit(self) -> None:
        while self._waiting:
            siblings = self._waiting[0]
            parent = self._parent_stem(siblings[0])
            if self._start(siblings, keep=self._starts[parent] > 1):
                self._starts[parent] -= 1
                self._waiting.popleft()
            elif not self._drop_drafts(self._drafts.all):
                return
        self._speculate()

    def _wait(self, siblings: list[Node], *, first: bool = False) -> None:
        """Let some siblings, equal so far, wait until there is room to write them."""
        (self._waiting.appendleft if first else self._waiting.append)(siblings)
        self._starts[self._parent_stem(siblings[0])] += 1

    def _start(self, siblings: list[Node], *, keep: bool) -> bool:
        """Begin or go on writing some siblings. False when there is no room for them now.

        Args:
            keep: others will start from the same parent.
        """
        first = siblings[0]
        stem = self._parent_stem(first)
        if first.tokens:
            stem = Stem(stem, tuple(first.tokens))
        writing = sum(len(strand.feed) for strand in self._strands)
        headroom = _HEADROOM * (len(self._strands) + 1) if self._strands else 0
        needed = writing + self._tree.missing(stem) + headroom
        if not self._tree.make_room(needed) and self._strands:
            return False
        claimed = self._tree.claim(stem, keep=keep)
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

    def _speculate(self) -> None:
        """Give rows that finished paths left free to the next steps of the likeliest survivors."""
        free = sum(len(opened.nodes) for opened in self._groups) - len(self._strands)
        if not self._mechanisms.drafts or not self._strands or free <= 0 or not self._drafts_pay():
            return
        finished = [
            (opened.group, node)
            for opened in self._groups
            for node in opened.nodes
            if node.ending in (Ending.STEP, Ending.LENGTH) and not self._drafts.has(node.lineage)
        ]
        for group, node in sorted(finished, key=lambda pair: potential(pair[1]), reverse=True):
            following = self._policy.follow(group, node.lineage)
            if following is None or any(b.lineage in self._past.nodes for b in following.branches):
                continue
            for siblings in self._strands_for(self._nodes_of(following)):
                if free <= 0 or not self._start(siblings, keep=True):
                    return
                self._drafts.add(node.lineage, siblings)
                free -= 1

    def _drafts_pay(self) -> bool:
        if not self._mechanisms.only_if_it_pays:
            return True
        candidates = sum(len(opened.nodes) for opened in self._groups)
        children = len({branch.child for o in self._groups for branch in o.group.branches})
        chance = min(1.0, 1 / max(1, min(children, candidates)))
        return self._step_times.extra_row_pays(len(self._strands), chance)

    def _drop_drafts(self, nodes: Sequence[Node]) -> bool:
        """Forget drafts and what the cache holds for them alone. False if there are none."""
        if not nodes:
            return False
        self._drafts.forget(nodes)
        dropped = {id(node) for node in nodes}
        strands, self._strands = self._strands, []
        for strand in strands:
            strand.members = [node for node in strand.members if id(node) not in dropped]
            if strand.members:
                self._strands.append(strand)
            else:
                self._tree.drop(strand.path)
        kept = {id(node.stem) for opened in self._groups for node in opened.nodes}
        for node in nodes:
            self.counts.dropped += len(node.tokens)
            if node.stem is not None and id(node.stem) not in kept:
                self._tree.forget(node.stem)
        self._emit(events.DraftsDropped(lineages=tuple(node.lineage for node in nodes)))
        return True

    # -- decoding -------------------------------------------------------------------------------

    def _decode(self) -> None:
        """One forward pass over all strands, and one draw for every node."""
        while not self._tree.make_room(sum(len(strand.feed) for strand in self._strands)):
            self._preempt()
            if not self._strands:
                return
        self._strands.sort(key=lambda strand: strand.draft)  # what is certain splits first
        before = self._clock()
        logits = self._generator.forward(
            [Span((strand.path,), strand.feed) for strand in self._strands]
        )
        if all(len(strand.feed) == 1 for strand in self._strands):
            self._step_times.record(len(self._strands), self._clock() - before)
        self.counts.decode_steps += 1
        rows = sum(len(opened.nodes) for opened in self._groups)
        strands, self._strands = self._strands, []
        for index, (strand, row) in enumerate(zip(strands, logits, strict=True)):
            uniforms = [node.draws.uniform(len(node.tokens)) for node in strand.members]
            tokens = self._sampler.draw(row, uniforms)
            agreeing: dict[int, list[Node]] = defaultdict(list)
            for node, token in zip(strand.members, tokens, strict=True):
                agreeing[token].append(node)
            if strand.draft:
                # A draft never makes the batch larger than the search itself would.
                left = rows - len(self._strands) - (len(strands) - index - 1)
                self._thin(agreeing, max(1, left))
            paths = self._split(strand.path, len(agreeing))
            for (token, members), path in zip(agreeing.items(), paths, strict=True):
                self._append(path, token, members)

    def _thin(self, agreeing: dict[int, list[Node]], most: int) -> None:
        """Keep the `most` commonest continuations of a draft; the rest is written when opened."""
        for token in sorted(agreeing, key=lambda token: -len(agreeing[token]))[most:]:
            lost = agreeing.pop(token)
            self._drafts.forget(lost)
            self.counts.dropped += sum(len(node.tokens) for node in lost)
            self._emit(events.DraftsDropped(lineages=tuple(node.lineage for node in lost)))

    def _split(self, path: int, count: int) -> list[int | None]:
        """The path and copies of it; None where every path is taken."""
        paths: list[int | None] = [path]
        for _ in range(count - 1):
            copy = self._tree.new_path()
            if copy is not None:
                self._generator.fork(path, copy)
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
        if ending is None:
            if path is None and members[0].draft:
                self._drop_drafts(members)
            elif path is None:
                self._wait(members, first=True)
            else:
                self._strands.append(Strand(path, [token], members))
            return
        self._finish(path, members, ending)

    def _ending(self, node: Node, end: bool) -> Ending | None:
        if end:
            return Ending.END
        if self._parent_stem(node).end + len(node.tokens) >= self._limits.context:
            return Ending.CONTEXT
        if node.stepping.ended and not node.whole:
            return Ending.STEP
        if len(node.tokens) >= node.limit:
            return Ending.LENGTH
        return None

    def _finish(self, path: int | None, members: list[Node], ending: Ending) -> None:
        stem = Stem(self._parent_stem(members[0]), tuple(members[0].tokens))
        if path is not None:
            if ending in (Ending.STEP, Ending.LENGTH):
                self._tree.settle(path, stem)
            else:
                self._tree.drop(path)
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
            if self._verifier is not None and not node.draft:
                self._unscored.append(node)

    def _preempt(self) -> None:
        """The cache is full of what is being written: the last strand waits, and is dropped.

        A strand that is alone and still does not fit has met the end of its context.
        """
        drafts = [node for strand in self._strands if strand.draft for node in strand.members]
        if self._drop_drafts(drafts):
            return
        strand = self._strands.pop()
        self._tree.drop(strand.path)
        if self._strands:
            self._wait(strand.members, first=True)
        else:
            self._finish(None, strand.members, Ending.CONTEXT)

    # -- verifying and deciding -----------------------------------------------------------------

    def _judged_parent(self, node: Node) -> Judged:
        assert self._verifier is not None
        if node.parent is None:
            return self._verifier.root
        assert node.parent.judged is not None
        return node.parent.judged

    def _verify(self) -> None:
        """Score finished steps: those of complete groups, in as large a batch as is at hand."""
        if self._verifier is None or not self._unscored:
            return
        complete = {
            node.lineage
            for group in self._groups
            if all(node.ending is not None for node in group.nodes)
            for node in group.nodes
        }
        ready = [node for node in self._unscored if node.lineage in complete]
        few = len(ready) < sum(not strand.draft for strand in self._strands)
        if not ready or (few and sum(len(node.tokens) for node in ready) < _VERIFY_BATCH):
            return
        self._unscored = [node for node in self._unscored if node.lineage not in complete]
        judged = self._verifier.score([(self._judged_parent(n), n.steps) for n in ready])
        for node, judgement in zip(ready, judged, strict=True):
            node.judged = judgement
            node.scores = judgement.scores_since(self._judged_parent(node))
            self._emit(events.StepScored(lineage=node.lineage, scores=node.scores))

    def _decide(self) -> None:
        for opened in [group for group in self._groups if self._is_ready(group)]:
            self._groups.remove(opened)
            group = opened.group
            candidates = [node.candidate() for node in opened.nodes]
            before = [candidate for _, candidate in self._completed[group.key]]
            decision = self._policy.decide(group, candidates, before)
            by_lineage = {candidate.lineage: candidate for candidate in candidates}
            self._completed[group.key] += [
                (group.round, by_lineage[lineage]) for lineage in decision.completed
            ]
            if decision.pruned:
                self._emit(
                    events.NodesPruned(
                        round=group.round,
                        lineages=decision.pruned,
                        reason=self._reason(len(decision.kept), len(candidates)),
                    )
                )
            self._emit(
                events.BeamsSelected(
                    round=group.round, kept=decision.kept, completed=decision.completed
                )
            )
            self._open(decision.next)
            self._drop_drafts(self._drafts.of(opened.nodes))
            self._drafts.reopen(node.lineage for node in opened.nodes)
            self._release(opened.nodes, decision.next)

    def _is_ready(self, opened: _OpenGroup) -> bool:
        return all(
            node.ending is not None and (self._verifier is None or node.scores is not None)
            for node in opened.nodes
        )

    @staticmethod
    def _reason(kept: int, candidates: int) -> str:
        return f"not among the best {kept} of {candidates}" if kept else "the search ended"

    def _release(self, nodes: Sequence[Node], following: Sequence[Group]) -> None:
        """Forget the caches of nodes that nothing will be built on."""
        parents = {branch.parent for group in following for branch in group.branches}
        # Equal siblings share their stems: one that goes on keeps them for all.
        survivors = [node for node in nodes if node.lineage in parents]
        live = {id(node.stem) for node in survivors} | {id(node.judged) for node in survivors}
        for node in nodes:
            if node.parent is not None and node.parent.stem is not None:
                self._tree.forget(node.parent.stem)  # the children's own paths hold its cells
            if node.lineage not in parents:
                if node.stem is not None and id(node.stem) not in live:
                    self._tree.forget(node.stem)
                if (
                    self._verifier is not None
                    and node.judged is not None
                    and id(node.judged) not in live
                ):
                    self._verifier.release(node.judged)
