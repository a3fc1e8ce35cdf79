"""Whether two searches came to the same tree, node by node."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bench.searches import Outcome


@dataclass
class Equality:
    """Searches compared with others that should be equal to them."""

    runs: int = 0
    nodes: int = 0
    """Compared."""
    differing: int = 0
    """Of these: not written in both, or with other tokens or another ending."""
    ties: int = 0
    """Of those: where a run first departed, because two tokens were as likely as each other to the
    last bits; all that differs below follows from it."""
    scores: int = 0
    """Equal nodes whose scores differ in any bit."""
    furthest: float = 0.0
    """Largest difference of a score."""
    decisions: int = 0
    """Runs that selected or pruned other nodes."""
    answers: int = 0
    """Runs with another answer."""
    drafted: int = 0
    """Tokens, by the other search; likewise of evicted ones. Without any, little was put to the
    test."""
    evicted: int = 0

    def compare(self, first: Outcome, other: Outcome) -> None:
        self.runs += 1
        self.decisions += first.decisions != other.decisions
        self.answers += first.answer != other.answer
        self.drafted += other.counts.drafted
        self.evicted += other.counts.evicted
        departed: set[tuple[int, ...]] = set()
        for at in sorted(first.nodes.keys() | other.nodes.keys(), key=len):
            self.nodes += 1
            ours, theirs = first.nodes.get(at), other.nodes.get(at)
            if ours is None or theirs is None:
                self.differing += 1
            elif (ours.tokens, ours.ending) != (theirs.tokens, theirs.ending):
                self.differing += 1
                self.ties += not any(at[:depth] in departed for depth in range(len(at)))
                departed.add(at)
            elif ours.scores != theirs.scores:
                self.scores += 1
                gaps = (abs(a - b) for a, b in zip(ours.scores, theirs.scores, strict=False))
                self.furthest = max(self.furthest, *gaps, 0.0)

    def cells(self) -> list[str]:
        counts = (self.runs, self.nodes, self.differing, self.ties, self.scores)
        furthest = f"{self.furthest:.1e}" if self.scores else "0"
        last = (self.decisions, self.answers, self.drafted, self.evicted)
        return [*(f"{count:,}" for count in counts), furthest, *(f"{count:,}" for count in last)]


COLUMNS = (
    "runs",
    "nodes compared",
    "differing",
    "of them ties",
    "scores differing",
    "furthest",
    "other decisions",
    "other answers",
    "drafted",
    "evicted",
)


def total(parts: Iterable[Equality]) -> Equality:
    """All of them together."""
    result = Equality()
    for part in parts:
        for name, value in vars(part).items():
            old = getattr(result, name)
            setattr(result, name, max(old, value) if name == "furthest" else old + value)
    return result
