"""Which lines of the tree to show where there is no room for all of them."""

from __future__ import annotations

from dataclasses import dataclass

from app.run_view import Node, RunView, State


@dataclass(frozen=True, slots=True)
class Row:
    """A node, or the pruned children of one folded into a line."""

    depth: int
    node: Node | None
    folded: int = 0
    folded_best: float | None = None
    leads: bool = False
    """On the best path so far."""
    tip: bool = False
    """Nothing follows it yet."""


def tree_rows(view: RunView, height: int) -> tuple[list[Row], int]:
    """At most `height` rows in the order of the tree, and how many more there would be.

    Tips stay before inner nodes, the best path before others, late steps before early ones.
    """
    rows = _folded(view)
    if len(rows) <= height:
        return rows, 0
    ranked = sorted(range(len(rows)), key=lambda i: _importance(rows[i]), reverse=True)
    shown = sorted(ranked[:height])
    return [rows[i] for i in shown], len(rows) - len(shown)


def _importance(row: Row) -> tuple[bool, bool, bool, int]:
    return (row.leads and row.tip, row.tip, row.leads, row.depth)


def _folded(view: RunView) -> list[Row]:
    best = {id(node) for node in view.leader.path()} if view.leader else set[int]()
    rows: list[Row] = []
    waiting = _below(view.root, best)
    while waiting:
        row = waiting.pop()
        rows.append(row)
        if row.node is not None:
            waiting.extend(_below(row.node, best))
    return rows


def _below(parent: Node, best: set[int]) -> list[Row]:
    """The rows of the children, in the order in which they are to be popped."""
    depth = len(parent.lineage) + 1
    alive: list[Row] = []
    dead: list[Node] = []
    for child in parent.in_order:
        if child.state is State.PRUNED:
            dead.append(child)
        else:
            alive.append(Row(depth, child, leads=id(child) in best, tip=_is_tip(child)))
    if dead:
        scores = [child.score for child in dead if child.score is not None]
        alive.append(Row(depth, None, len(dead), max(scores, default=None)))
    return alive[::-1]


def _is_tip(node: Node) -> bool:
    return all(child.state is State.PRUNED for child in node.children)
