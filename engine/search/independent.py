"""Paths that never meet: greedy, best-of-n, majority vote and weighted vote.

They differ in what is done with the finished paths (see `engine.answers.vote`) and in whether a
verifier scores them, not in how they grow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.search.policy import Branch, Candidate, Decision, Ending, Group, Lineage


@dataclass(frozen=True)
class Independent:
    """`n` chains of steps, one group each, so that no path waits for another."""

    n: int
    max_steps: int
    guided: bool

    def start(self) -> tuple[Group, ...]:
        return tuple(self._group((i,), 0, Branch((), i)) for i in range(self.n))

    def decide(
        self, group: Group, candidates: Sequence[Candidate], completed: Sequence[Candidate]
    ) -> Decision:
        (tip,) = candidates
        if tip.ending is Ending.END:
            return Decision(completed=(tip.lineage,))
        if group.whole or not tip.can_continue:
            return Decision(pruned=(tip.lineage,))
        onward = self._group(group.key, group.round + 1, Branch(tip.lineage, 0))
        return Decision(next=(onward,), kept=(tip.lineage,))

    def follow(self, group: Group, lineage: Lineage) -> Group | None:
        return None

    def outlook(
        self, group: Group, scored: Sequence[Candidate], completed: Sequence[Candidate]
    ) -> None:
        return None

    def final(self, completed: Sequence[Candidate]) -> tuple[Candidate, ...]:
        return tuple(completed)

    def _group(self, key: tuple[int, ...], round: int, branch: Branch) -> Group:
        return Group(key, round, (branch,), whole=round == self.max_steps - 1)
