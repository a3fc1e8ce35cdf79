"""Finding words in the steps of a run."""

from __future__ import annotations

from app.run_view import Node, RunView


class Search:
    """What the user looks for; letter case does not matter."""

    def __init__(self) -> None:
        self.words = ""

    def count(self, view: RunView) -> int:
        return len(self._matches(view))

    def next(self, view: RunView, here: Node | None, step: int) -> Node | None:
        """The match after (or before) a node in the order of the tree, round the end."""
        matches = self._matches(view)
        if not matches:
            return None
        place = here.lineage if here is not None else ()
        if step > 0:
            return next((node for node in matches if node.lineage > place), matches[0])
        return next((node for node in matches[::-1] if node.lineage < place), matches[-1])

    def _matches(self, view: RunView) -> list[Node]:
        """In the order of the tree, which is that of the lineages."""
        words = self.words.casefold()
        if not words:
            return []
        found = [node for node in view.nodes.values() if words in node.text.casefold()]
        return sorted(found, key=lambda node: node.lineage)
