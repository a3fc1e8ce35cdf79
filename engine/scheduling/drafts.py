"""Nodes written before their parent is decided (FastTTS, speculative beam extension).

The draws of a node depend on its name alone, so a draft is exactly what the node would be: should
the policy open it, it is taken over whole, and otherwise nothing remembers it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.scheduling.node import Node
from engine.search.policy import Lineage


class Drafts:
    """The drafts of a run."""

    def __init__(self) -> None:
        self._nodes: dict[Lineage, Node] = {}
        self._parents: set[Lineage] = set()

    def has(self, parent: Lineage) -> bool:
        """Whether this node's next steps were drafted already."""
        return parent in self._parents

    def add(self, parent: Lineage, nodes: Iterable[Node]) -> None:
        self._parents.add(parent)
        for node in nodes:
            node.draft = True
            self._nodes[node.lineage] = node

    def promote(self, lineage: Lineage, limit: int, whole: bool) -> Node | None:
        """Take a draft over as a node of the tree; None if there is none of this name."""
        node = self._nodes.get(lineage)
        if node is None or (node.limit, node.whole) != (limit, whole):
            return None
        del self._nodes[lineage]
        node.draft = False
        return node

    @property
    def all(self) -> list[Node]:
        return list(self._nodes.values())

    def of(self, parents: Sequence[Node]) -> list[Node]:
        """The drafts that follow any of these nodes."""
        lineages = {node.lineage for node in parents}
        return [node for node in self._nodes.values() if node.lineage[:-1] in lineages]

    def forget(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            self._nodes.pop(node.lineage, None)

    def reopen(self, parents: Iterable[Lineage]) -> None:
        """Decided nodes are drafted from no more; their names need not be kept."""
        self._parents.difference_update(parents)


def potential(node: Node) -> float:
    """How likely a finished node is to survive, for want of its decision (FastTTS, section 4.1).

    Its own score once it is verified, before that its parent's, which it tends to share.
    """
    scores = node.scores or (node.parent.scores if node.parent else None)
    return scores[-1] if scores else 0.0
