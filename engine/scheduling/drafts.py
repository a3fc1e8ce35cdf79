"""Nodes written before their parent is decided (FastTTS, speculative beam extension).

The draws of a node depend on its name alone, so a draft is exactly what the node would be: should
the policy open it, it is taken over whole, and otherwise nothing remembers it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from engine.scheduling.node import Node
from engine.search.policy import Group, Lineage


class Drafts:
    """The drafts of a run."""

    def __init__(self) -> None:
        self._nodes: dict[Lineage, Node] = {}
        self._groups: dict[Lineage, Group] = {}
        """By parent, the group its children would belong to."""
        self._children: dict[Lineage, list[Node]] = {}
        """By parent, those of its children that are drafts."""

    def __len__(self) -> int:
        return len(self._nodes)

    def add(self, parent: Lineage, group: Group, nodes: Iterable[Node]) -> None:
        self._groups[parent] = group
        children = self._children.setdefault(parent, [])
        for node in nodes:
            node.draft = True
            self._nodes[node.lineage] = node
            children.append(node)

    def of_name(self, lineage: Lineage) -> Node | None:
        return self._nodes.get(lineage)

    def promote(self, lineage: Lineage, limit: int, whole: bool) -> Node | None:
        """Take a draft over as a node of the tree; None if there is none of this name."""
        node = self._nodes.get(lineage)
        if node is None or (node.limit, node.whole) != (limit, whole):
            return None
        self._remove(node)
        node.draft = False
        return node

    def finished(self) -> Iterator[tuple[Group, Node]]:
        """Drafts that are written to their end, and the groups they would belong to."""
        for node in self._nodes.values():
            if node.ending is not None:
                yield self._groups[node.lineage[:-1]], node

    def below(self, parents: Iterable[Lineage]) -> list[Node]:
        """All drafts that follow any of these nodes, however far; none through a promoted one."""
        found: list[Node] = []
        for parent in parents:
            children = self._children.get(parent, ())
            found += children
            found += self.below(child.lineage for child in children)
        return found

    def forget(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            if self._nodes.get(node.lineage) is node:
                self._remove(node)
            self._groups.pop(node.lineage, None)

    def _remove(self, node: Node) -> None:
        parent = node.lineage[:-1]
        del self._nodes[node.lineage]
        self._children[parent].remove(node)
        if not self._children[parent]:
            del self._children[parent]

    def close(self, parents: Iterable[Lineage]) -> None:
        """Decided nodes are drafted from no more; their names need not be kept."""
        for parent in parents:
            self._groups.pop(parent, None)
