"""Gives rows that finished paths leave free to the next steps of the likeliest survivors."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from engine.models.kv_tree import KvTree
from engine.protocol import events
from engine.scheduling.drafts import Drafts
from engine.scheduling.node import Node, Strand
from engine.scheduling.past import Past
from engine.scheduling.prospects import Prospect, Prospects
from engine.scheduling.settings import Counts, Mechanisms
from engine.scheduling.step_times import StepTimes
from engine.scheduling.strands import Strands
from engine.scheduling.tree import ReasoningTree
from engine.scheduling.verification import Verification
from engine.search.policy import Group, Lineage, Policy

_TYPICAL = 0.25
"""Chance of a draft of which nothing is known: of four children one survives, as a rule."""

_PAUSE = 2
"""Decisions without drafts once they had to leave for want of memory: what is begun before the tree
is smaller would have to leave as well."""


class Speculation:
    """The drafts of one search: which are written, which go on, which are dropped."""

    def __init__(
        self,
        policy: Policy,
        mechanisms: Mechanisms,
        past: Past,
        tree: ReasoningTree,
        cache: KvTree,
        counts: Counts,
        step_times: StepTimes,
        verification: Verification | None,
        emit: Callable[[events.Event], None],
    ) -> None:
        self._policy = policy
        self._mechanisms = mechanisms
        self._past = past
        self._tree = tree
        self._cache = cache
        self._counts = counts
        self._step_times = step_times
        self._verification = verification
        self._emit = emit
        self._prospects = Prospects(policy, mechanisms)
        self._ranked: list[Prospect] | None = None
        """What is worth drafting; None when something changed since it was found out."""
        self._pause = 0
        """Decisions to await before drafts are begun again."""
        self.drafts = Drafts()
        self.allowed = True
        """Whether nobody else needs the rows."""

    @property
    def enabled(self) -> bool:
        return self.allowed and self._mechanisms.drafts

    def would_use_scores(self, rows: int) -> bool:
        """Whether typical drafts pay in a pass of `rows`, so that scores tell which to write."""
        return self.enabled and self._pays(_TYPICAL, rows)

    def changed(self) -> None:
        """Nodes were finished, scored or opened: what is worth drafting may be something else."""
        self._ranked = None

    def start(self, strands: Strands) -> None:
        """Begin drafts in the rows that are free."""
        if not self.enabled or self._pause or not self._worth_ranking(strands):
            return
        rows = self._tree.rows - len(strands.certain)
        ranked = self._rank(strands) if rows > 0 else []
        if not any(self._worth_drafting(prospect, len(strands)) for prospect in ranked):
            return
        chances = {prospect.node.lineage: prospect.chance for prospect in ranked}
        drafting = sorted(_chance(chances, strand) for strand in strands.drafting)
        for prospect in ranked:
            better = len(drafting) - bisect_left(drafting, prospect.chance)
            for siblings, group in self._undrafted(prospect, len(strands)):
                if better >= rows or not strands.start(siblings, keep=True, draft=True):
                    return
                self.drafts.add(prospect.node.lineage, group, siblings)
                better += 1

    def chosen(self, strands: Strands) -> list[Strand]:
        """The strands of the next pass: all that are certain, and drafts in the rows left over.

        Drafts never make the batch larger than the search itself would; those that find no row
        pause.
        """
        certain, drafting = strands.certain, strands.drafting
        rows = max(0, self._tree.rows - len(certain))
        if len(drafting) > rows:
            chances = {p.node.lineage: p.chance for p in self._rank(strands)}
            drafting.sort(key=lambda strand: -_chance(chances, strand))
        return certain + drafting[:rows]

    def drop_least(self, strands: Strands) -> bool:
        """Drop the least likely of the drafts that are being written. False if there is none."""
        if not strands.drafting:
            return False
        chances = {p.node.lineage: p.chance for p in self._rank(strands)}
        drafting = strands.drafting
        if not drafting:  # to rank them dropped those that are lost
            return True
        self._pause = _PAUSE
        return self.drop(min(drafting, key=lambda s: _chance(chances, s)).members, strands)

    def drop(self, nodes: Sequence[Node], strands: Strands) -> bool:
        """Forget drafts and what the cache holds for them alone. False if there are none."""
        if not nodes:
            return False
        below = self.drafts.below(node.lineage for node in nodes)
        nodes = list({id(node): node for node in (*nodes, *below)}.values())
        self.drafts.forget(nodes)
        strands.stop(nodes)
        kept = {id(node.stem) for node in self._tree.finished()}
        for node in nodes:
            self._counts.dropped += len(node.tokens)
            if node.stem is not None and id(node.stem) not in kept:
                self._cache.forget(node.stem)
        if self._verification is not None:
            self._verification.release(nodes)
        self.changed()
        self._emit(events.DraftsDropped(lineages=tuple(node.lineage for node in nodes)))
        return True

    def decided(self, nodes: Iterable[Node], strands: Strands) -> None:
        """These nodes are decided: drop what was drafted of them and not promoted."""
        names = [node.lineage for node in nodes]
        self.drop(self.drafts.below(names), strands)
        self.drafts.close(names)
        self._pause = max(0, self._pause - 1)
        self.changed()

    def _worth_ranking(self, strands: Strands) -> bool:
        """Whether there may be something to draft: typical nodes, or some that are sure."""
        return self._pays(_TYPICAL, len(strands)) or any(
            node.scores is not None for node in self._tree.finished()
        )

    def _rank(self, strands: Strands) -> list[Prospect]:
        """What may be drafted from, best first. What is lost for good is drafted no more."""
        while self._ranked is None:
            self._ranked = self._prospects.rank(self._tree, self.drafts)
            self.drop(self.drafts.below(self._prospects.lost), strands)  # if any, rank again
        return self._ranked

    def _undrafted(self, prospect: Prospect, rows: int) -> Iterator[tuple[list[Node], Group]]:
        """The children of a node that should be drafted and are not yet."""
        lineage = prospect.node.lineage
        following = self._policy.follow(prospect.group, lineage)
        if following is None or any(b.lineage in self._past.nodes for b in following.branches):
            return
        wanted = following.branches[: prospect.branches]
        missing = tuple(b for b in wanted if self.drafts.of_name(b.lineage) is None)
        if missing and self._worth_drafting(prospect, rows):
            nodes = self._tree.fresh(replace(following, branches=missing), prospect.node)
            families = [nodes] if self._mechanisms.deduplicate else [[node] for node in nodes]
            for siblings in families:
                yield siblings, following

    def _worth_drafting(self, prospect: Prospect, rows: int) -> bool:
        return prospect.sure or self._pays(prospect.chance, rows)

    def _pays(self, chance: float, rows: int) -> bool:
        return not self._mechanisms.only_if_it_pays or self._step_times.extra_row_pays(
            max(1, rows), chance
        )


def _chance(chances: dict[Lineage, float], strand: Strand) -> float:
    """That what a draft follows survives."""
    return chances.get(strand.members[0].lineage[:-1], 0.0)
