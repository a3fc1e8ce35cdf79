"""Runs a policy as an engine would, with a function in place of the models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from engine.search.policy import Candidate, Decision, Ending, Group, Lineage, Policy

ROOT = Candidate((), "", (), Ending.STEP)

Writer = Callable[[Group, Sequence[Candidate]], list[Candidate]]
"""Writes and scores the branches of a group, given the parent of each."""


@dataclass
class Round:
    """A group with what became of it."""

    group: Group
    candidates: list[Candidate]
    decision: Decision


@dataclass
class Run:
    """A finished search."""

    rounds: list[Round] = field(default_factory=list)
    completed: list[Candidate] = field(default_factory=list)
    """Ordered by key, then by round."""
    final: tuple[Candidate, ...] = ()

    def by_name(self) -> dict[tuple[Lineage, int], Round]:
        """The rounds by key and number, whatever order they were run in."""
        return {(r.group.key, r.group.round): r for r in self.rounds}


def run(policy: Policy, write: Writer, pick: Callable[[int], int] = lambda waiting: 0) -> Run:
    """Run a policy to its end.

    Args:
        pick: which of the waiting groups, oldest first, finishes next.
    """
    run = Run()
    nodes: dict[Lineage, Candidate] = {(): ROOT}
    completed: dict[Lineage, list[Candidate]] = {}
    waiting = list(policy.start())
    while waiting:
        group = waiting.pop(pick(len(waiting)))
        candidates = write(group, [nodes[branch.parent] for branch in group.branches])
        nodes.update((c.lineage, c) for c in candidates)
        of_key = completed.setdefault(group.key, [])
        decision = policy.decide(group, candidates, tuple(of_key))
        of_key += [nodes[lineage] for lineage in decision.completed]
        waiting += decision.next
        run.rounds.append(Round(group, candidates, decision))
    run.completed = [c for key in sorted(completed) for c in completed[key]]
    run.final = policy.final(run.completed)
    return run


def scripted(
    ending: Callable[[Group, Lineage], Ending], score: Callable[[Lineage], float]
) -> Writer:
    """Models whose steps are named by lineage and end and score as told."""

    def write(group: Group, parents: Sequence[Candidate]) -> list[Candidate]:
        return [
            Candidate(
                branch.lineage,
                f"{parent.text}{branch.lineage}\n\n",
                (*parent.scores, score(branch.lineage)),
                ending(group, branch.lineage),
            )
            for branch, parent in zip(group.branches, parents, strict=True)
        ]

    return write
