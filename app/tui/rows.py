"""Which rows the tree of a run has: what goes on is open, what came to nothing is folded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from app.run_view import Lineage, Node, RunView, State
from app.tui.turn import Folds

Key = tuple[Lineage, bool]
"""Names a row while the run lives: the lineage of a node, or of a parent and True for its fold."""


@dataclass(frozen=True, slots=True)
class Row:
    """A node, or the dead branches below one, folded into one row."""

    node: Node
    """Of a fold, the parent of what is folded."""
    guides: str
    """The lines that lead to the row."""
    margin: str
    """What stands before the guides of the rows below."""
    dead: tuple[Node, ...] = ()
    """What is folded."""

    @property
    def key(self) -> Key:
        return self.node.lineage, bool(self.dead)


class Rows:
    """The rows of a view, kept up to date.

    A branch is dead when it was pruned, or when all that goes on from it is. Dead branches of a
    node share one row until they are unfolded; the path that leads is never folded.

    Attributes:
        lines: the rows from top to bottom.
        leading: the nodes of the best path.
    """

    def __init__(self, view: RunView, folds: Folds) -> None:
        self.view = view
        self.folds = folds
        self.lines: list[Row] = []
        self.leading: frozenset[Node] = frozenset()
        self._known: set[Node] = set()
        self._dead: set[Node] = set()
        self._places: dict[Key, int] = {}
        self.update(view.nodes.values())

    def update(self, nodes: Iterable[Node]) -> bool:
        """These nodes have changed; tells whether any row came or went."""
        changed = self._lead()
        for node in nodes:
            changed |= self._place(node)
        if changed:
            self.build()
        return changed

    def build(self) -> None:
        """Make the rows anew, as after a change of the folds."""
        self.lines.clear()
        waiting = self._below(self.view.root, "")
        while waiting:
            row = waiting.pop()
            self.lines.append(row)
            if not row.dead and row.node.lineage not in self.folds.collapsed:
                waiting.extend(self._below(row.node, row.margin))
        self._places = {row.key: place for place, row in enumerate(self.lines)}

    def place(self, key: Key) -> int | None:
        """The line of a row; None if there is none of that name."""
        return self._places.get(key)

    def reveal(self, node: Node) -> None:
        """Unfold whatever hides a node."""
        for step in node.path():
            assert step.parent is not None
            if self._is_folded(step):
                self.folds.unfolded.add(step.parent.lineage)
            if step is not node:
                self.folds.collapsed.discard(step.lineage)
        self.build()

    def _lead(self) -> bool:
        tip = self.view.leader
        leading = frozenset(tip.path()) if tip is not None else frozenset[Node]()
        if leading == self.leading:
            return False
        self.leading = leading
        return True

    def _place(self, node: Node) -> bool:
        """Take in what a node is now; tells whether rows change."""
        new = node not in self._known
        self._known.add(node)
        changed = self._judge(node)
        if new and node.parent in self._dead:
            changed |= self._judge(node.parent)
        return new or changed

    def _judge(self, node: Node | None) -> bool:
        """Whether the node is dead, and so those above it, changes."""
        changed = False
        while node is not None and node.parent is not None:
            goes_on = not node.children or any(child not in self._dead for child in node.children)
            dead = node.stage is State.PRUNED or (node.stage is State.KEPT and not goes_on)
            if dead == (node in self._dead):
                break
            if dead:
                self._dead.add(node)
            else:
                self._dead.discard(node)
            changed = True
            node = node.parent
        return changed

    def _is_folded(self, node: Node) -> bool:
        assert node.parent is not None
        hidden = self.folds.hides_pruned(node.parent)
        return hidden and node in self._dead and node not in self.leading

    def _below(self, parent: Node, margin: str) -> list[Row]:
        """The rows right below a node, in the order in which they are to be popped."""
        children = parent.in_order
        dead = tuple(child for child in children if self._is_folded(child))
        shown = [child for child in children if child not in dead] if dead else children
        rows: list[Row] = []
        if dead:
            rows.append(Row(parent, _guides(margin, parent, last=True), "", dead))
        for child in reversed(shown):
            last = not rows
            below = "" if parent.parent is None else margin + ("  " if last else "│ ")
            rows.append(Row(child, _guides(margin, parent, last=last), below))
        return rows


def _guides(margin: str, parent: Node, *, last: bool) -> str:
    if parent.parent is None:
        return ""
    return margin + ("└ " if last else "├ ")
