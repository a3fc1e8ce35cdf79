"""The reasoning tree of one search: its nodes, and the groups that wait for their decision."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from engine.models.kv_tree import Stem
from engine.models.sampling import Draws
from engine.models.step_text import StepText
from engine.scheduling.node import Node
from engine.scheduling.settings import Limits
from engine.search.policy import Candidate, Decision, Group, Lineage


@dataclass(eq=False, slots=True)
class OpenGroup:
    """A group that is not decided yet, and its nodes in the order of its branches."""

    group: Group
    nodes: list[Node]

    @property
    def written(self) -> bool:
        return all(node.ending is not None for node in self.nodes)

    @property
    def scored(self) -> bool:
        return all(node.scores is not None for node in self.nodes)


class ReasoningTree:
    """Everything a search has opened."""

    def __init__(self, prompt: Sequence[int], seed: int, limits: Limits) -> None:
        self.root = Stem(None, tuple(prompt))
        self.limits = limits
        self.groups: list[OpenGroup] = []
        self._seed = seed
        self._nodes: dict[Lineage, Node] = {}
        self._completed: dict[Lineage, list[tuple[int, Candidate]]] = defaultdict(list)

    @property
    def completed(self) -> list[Candidate]:
        """Completions by group key, then round, then the policy's order."""
        return [c for key in sorted(self._completed) for _, c in self._completed[key]]

    def completed_in(self, group: Group) -> list[Candidate]:
        """What this group's key has completed so far."""
        return [candidate for _, candidate in self._completed[group.key]]

    @property
    def rows(self) -> int:
        """Nodes of all open groups: the size of batch that the search itself asks for."""
        return sum(len(opened.nodes) for opened in self.groups)

    def frontier(self) -> list[Candidate]:
        """Finished nodes that nothing was built on yet; what there is when time runs out."""
        parents = {id(node.parent) for node in self._nodes.values()}
        return [
            node.candidate()
            for _, node in sorted(self._nodes.items())
            if node.ending is not None and id(node) not in parents
        ]

    def fresh(self, group: Group, parent: Node | None = None) -> list[Node]:
        """New nodes for the branches of a group, not yet part of the tree.

        Args:
            parent: where all branches start, if that is a draft, which the tree does not know.
        """
        limit = min(group.step_tokens or self.limits.step, self.limits.step)
        nodes: list[Node] = []
        for branch in group.branches:
            before = parent or self._nodes.get(branch.parent)
            text = StepText(before.stepping.incomplete if before else b"")
            draws = Draws(self._seed, branch.lineage)
            nodes.append(Node(branch.lineage, before, draws, limit, group.whole, stepping=text))
        return nodes

    def draws(self, node: Node, stream: int) -> Draws:
        """A stream of a node's random numbers besides its own, by a negative number."""
        return Draws(self._seed, (*node.lineage, stream))

    def add(self, group: Group, nodes: list[Node]) -> None:
        self.groups.append(OpenGroup(group, nodes))
        self._nodes.update((node.lineage, node) for node in nodes)

    def close(self, opened: OpenGroup, decision: Decision) -> None:
        """A group is decided."""
        self.groups.remove(opened)
        by_lineage = {node.lineage: node for node in opened.nodes}
        self._completed[opened.group.key] += [
            (opened.group.round, by_lineage[lineage].candidate()) for lineage in decision.completed
        ]

    def finished(self) -> Iterator[Node]:
        """Nodes of undecided groups that are written."""
        for opened in self.groups:
            yield from (node for node in opened.nodes if node.ending is not None)

    def stem_before(self, node: Node) -> Stem:
        """Where a node starts in the generator's cache."""
        if node.parent is None:
            return self.root
        assert node.parent.stem is not None
        return node.parent.stem
