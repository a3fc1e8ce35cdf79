"""Diverse verifier tree search: independent trees, each followed greedily.

The decisions are those of search-and-learn's DVTS (huggingface/search-and-learn, commit
6f81cac), except that a candidate which is not a finished solution never becomes a completion
(its defect 3 and issue 57).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.search.aggregate import Aggregate, aggregate
from engine.search.policy import Branch, Candidate, Decision, Ending, Group, Lineage, Outlook


@dataclass(frozen=True)
class DiverseTrees:
    """`n // width` trees; each writes `width` next steps and follows the best of them.

    A tree ends when the step it would follow finishes the solution. All finished candidates of
    its last expansion are then completions, `n` at most over all trees.
    """

    n: int
    width: int
    max_steps: int
    aggregate: Aggregate

    @property
    def guided(self) -> bool:
        return True

    def start(self) -> tuple[Group, ...]:
        trees = range(self.n // self.width)
        return tuple(self._group((tree,), 0, (), tree * self.width) for tree in trees)

    def decide(
        self, group: Group, candidates: Sequence[Candidate], completed: Sequence[Candidate]
    ) -> Decision:
        pool = [c for c in candidates if c.ending is not Ending.CONTEXT]
        # `max` takes the first of equal scores, as the peer's argmax does.
        best = max(pool, key=self._score, default=None)
        if best and not group.whole and not _finished(best):
            kept, done = (best.lineage,), ()
            onward = (self._group(group.key, group.round + 1, best.lineage),)
        else:
            kept, done = (), tuple(c.lineage for c in pool if _finished(c))
            onward = ()
        pruned = tuple(c.lineage for c in candidates if c.lineage not in {*kept, *done})
        return Decision(next=onward, kept=kept, completed=done, pruned=pruned)

    def follow(self, group: Group, lineage: Lineage) -> Group | None:
        return None if group.whole else self._group(group.key, group.round + 1, lineage)

    def outlook(
        self, group: Group, scored: Sequence[Candidate], completed: Sequence[Candidate]
    ) -> Outlook | None:
        if group.whole:
            return None
        pool = [c for c in scored if c.ending is not Ending.CONTEXT]
        ranked = sorted(pool, key=self._score, reverse=True)  # stable: the first of equal scores
        return Outlook(
            ranked=tuple(c.lineage for c in ranked),
            outstanding=len(group.branches) - len(scored),
            keeps=1,
        )

    def final(self, completed: Sequence[Candidate]) -> tuple[Candidate, ...]:
        return tuple(completed)

    def _score(self, candidate: Candidate) -> float:
        return aggregate(self.aggregate, candidate.scores)

    def _group(self, key: Lineage, round: int, parent: Lineage, first: int = 0) -> Group:
        branches = tuple(Branch(parent, first + i) for i in range(self.width))
        return Group(key, round, branches, whole=round == self.max_steps - 1)


def _finished(candidate: Candidate) -> bool:
    """Whether the solution is there: it was ended, or a finished step holds the boxed answer."""
    boxed = candidate.ending is Ending.STEP and "boxed{" in candidate.text
    return candidate.ending is Ending.END or boxed
