"""Nodes of the reasoning tree while they are written, and the strands that write them."""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.models.kv_tree import Stem
from engine.models.sampling import Draws
from engine.models.step_text import StepText
from engine.search.policy import Candidate, Ending, Lineage
from engine.verify.prm import Judged


@dataclass(eq=False, slots=True)
class Node:
    """One step of a path."""

    lineage: Lineage
    parent: Node | None
    draws: Draws
    limit: int
    """Most tokens this node may have."""
    whole: bool
    """Written to the end of the solution, past step delimiters."""
    tokens: list[int] = field(default_factory=list)
    text: str = ""
    ending: Ending | None = None
    """None while it is written."""
    scores: tuple[float, ...] | None = None
    stem: Stem | None = None
    """Its place in the generator's cache, once it is finished."""
    judged: Judged | None = None
    """Its place in the verifier's tree, once it is scored."""
    opened: bool = False
    draft: bool = False
    """Written before its parent is decided."""
    stepping: StepText = field(default_factory=StepText)
    _candidate: Candidate | None = None

    @property
    def path_text(self) -> str:
        """The solution from the first step to the end of this node."""
        parts: list[str] = []
        node: Node | None = self
        while node is not None:
            parts.append(node.text)
            node = node.parent
        return "".join(reversed(parts))

    @property
    def path_scores(self) -> tuple[float, ...]:
        """One score a step of the path."""
        before = self.parent.path_scores if self.parent else ()
        return before + (self.scores or ())

    @property
    def steps(self) -> list[str]:
        """The node's own steps without blank lines: one, none, or several in a whole node."""
        return [step.strip() for step in self.text.split("\n\n") if step.strip()]

    def candidate(self) -> Candidate:
        """The finished node as the policy sees it; the same once it is scored."""
        if self._candidate is not None:
            return self._candidate
        assert self.ending is not None
        candidate = Candidate(self.lineage, self.path_text, self.path_scores, self.ending)
        if self.scores is not None:
            self._candidate = candidate
        return candidate


@dataclass(eq=False, slots=True)
class Strand:
    """One sequence in the cache that is being written.

    It writes for every sibling whose tokens have agreed so far (SpecScale's computation
    deduplication: a sequence with a potential), and splits when their draws differ.
    """

    path: int
    feed: list[int]
    """Tokens that are known but not yet computed; the last one's logits give the next draw."""
    members: list[Node]

    @property
    def draft(self) -> bool:
        return self.members[0].draft
