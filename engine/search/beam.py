"""Beam search guided by a process reward model.

The decisions are those of search-and-learn's `beam_search` (huggingface/search-and-learn,
commit 6f81cac), with these of its defects mended:

1. fewer paths than the width kept everything; `engine.search.build` refuses them;
2. the search went on after `n` paths were finished; it stops;
3. a step cut by its token cap counted as a finished solution; it goes on, and where it cannot,
   because the context is full or the rounds are over, it leaves without being one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.search.aggregate import Aggregate, aggregate
from engine.search.policy import Branch, Candidate, Decision, Ending, Group, Lineage, Outlook


@dataclass(frozen=True)
class Beam:
    """`n` paths in flight; after each step the `n // width` best are each written on."""

    n: int
    width: int
    max_steps: int
    aggregate: Aggregate
    filter_duplicates: bool
    """Of unfinished paths with exactly the same text only the first stays."""
    sort_completed: bool
    """Give the `n` best completions instead of the `n` first."""

    @property
    def guided(self) -> bool:
        return True

    def start(self) -> tuple[Group, ...]:
        return (self._group(0, tuple(Branch((), i) for i in range(self.n))),)

    def decide(
        self, group: Group, candidates: Sequence[Candidate], completed: Sequence[Candidate]
    ) -> Decision:
        done = tuple(c.lineage for c in candidates if c.ending is Ending.END)
        enough = len(completed) + len(done) >= self.n
        pool = [] if enough or group.whole else self._pool(candidates)
        best = [c.lineage for c in self._ranked(pool)[: self._keeps]]
        branches = self._expand([c for c in pool if c.lineage in best])

        parents = {branch.parent for branch in branches}
        kept = tuple(lineage for lineage in best if lineage in parents)
        return Decision(
            next=(self._group(group.round + 1, branches),) if branches else (),
            kept=kept,
            completed=done,
            pruned=tuple(c.lineage for c in candidates if c.lineage not in {*done, *kept}),
        )

    def follow(self, group: Group, lineage: Lineage) -> Group | None:
        if group.whole:
            return None
        return self._group(group.round + 1, tuple(Branch(lineage, i) for i in range(self.width)))

    def outlook(
        self, group: Group, scored: Sequence[Candidate], completed: Sequence[Candidate]
    ) -> Outlook | None:
        if group.whole:
            return None
        outstanding = len(group.branches) - len(scored)
        done = sum(c.ending is Ending.END for c in scored)
        return Outlook(
            ranked=tuple(c.lineage for c in self._ranked(self._pool(scored))),
            outstanding=outstanding,
            keeps=self._keeps,
            open_end=len(completed) + done + outstanding >= self.n,
        )

    def final(self, completed: Sequence[Candidate]) -> tuple[Candidate, ...]:
        if self.sort_completed:
            completed = sorted(completed, key=self._score, reverse=True)
        return tuple(completed[: self.n])

    @property
    def _keeps(self) -> int:
        return max(1, self.n // self.width)

    def _score(self, candidate: Candidate) -> float:
        return aggregate(self.aggregate, candidate.scores)

    def _pool(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """The candidates that may survive, in their own order."""
        pool = [c for c in candidates if c.can_continue]
        if not self.filter_duplicates:
            return pool
        first: dict[str, Candidate] = {}
        for candidate in pool:
            first.setdefault(candidate.text, candidate)
        return list(first.values())

    def _ranked(self, pool: Sequence[Candidate]) -> list[Candidate]:
        """Best first; of equal scores the later candidate, as where the peer's sort is stable."""
        return sorted(pool, key=self._score)[::-1]

    def _expand(self, survivors: Sequence[Candidate]) -> tuple[Branch, ...]:
        """Share the `n` branches of the next round: A, B, C, A, B, C, ... cut at `n`."""
        if not survivors:
            return ()
        turns = (divmod(i, len(survivors)) for i in range(self.n))
        return tuple(Branch(survivors[place].lineage, child) for child, place in turns)

    def _group(self, round: int, branches: tuple[Branch, ...]) -> Group:
        return Group((), round, branches, whole=round == self.max_steps - 1)
