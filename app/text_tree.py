"""The whole tree as text, for pipes, logs and screen readers."""

from __future__ import annotations

from collections.abc import Iterator

from app.glyphs import Glyphs
from app.run_view import Node, RunView


def text_tree(view: RunView, glyphs: Glyphs) -> Iterator[str]:
    """One line a node, every step in full."""
    if view.request is not None:
        yield glyphs.one_line(view.request.problem)
    waiting = _below(view.root, "")
    while waiting:
        node, margin, is_last = waiting.pop()
        yield margin + (glyphs.last if is_last else glyphs.branch) + _line(node, view, glyphs)
        waiting.extend(_below(node, margin + ("  " if is_last else glyphs.pipe)))


def _below(node: Node, margin: str) -> list[tuple[Node, str, bool]]:
    """The children, in the order in which they are to be popped."""
    children = node.in_order[::-1]
    return [(child, margin, i == 0) for i, child in enumerate(children)]


def _line(node: Node, view: RunView, glyphs: Glyphs) -> str:
    text = glyphs.one_line(node.text) or glyphs.more
    reason = f" [{glyphs.one_line(node.reason)}]" if node.reason else ""
    return f" {glyphs.label(node, scored=view.scored)} {text}{reason}"
