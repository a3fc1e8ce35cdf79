"""Everything about one step."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static

from app.glyphs import glyphs_for
from app.narration import clock
from app.printable import one_line, printable
from app.run_view import Hand, Lineage, Node, RunView, State
from app.tui.feed import Times
from app.tui.shown import as_text

_GLYPHS = glyphs_for("utf-8")
_DIGIT = re.compile(r"\d")
WORDS = {
    State.QUEUED: "waits to be taken up again",
    State.WRITING: "being written",
    State.DRAFT: "a draft: written before it is known whether its parent is kept",
    State.FINISHED: "written, not scored yet",
    State.SCORED: "scored, not decided yet",
    State.KEPT: "kept",
    State.PRUNED: "pruned",
    State.COMPLETED: "ends a solution",
    State.ANSWER: "ends the chosen solution",
}


_HANDS = {
    Hand.DRAFTED: "drafted, to be read by the generator",
    Hand.ACCEPTED: "drafted, and accepted by its meaning (approximate)",
    Hand.REWRITTEN: "written by the generator; not accepted",
}


class NodeDetail(VerticalScroll):
    """Whole text, scores, tokens, timing, and why the step was kept or pruned."""

    def __init__(self, id: str) -> None:
        super().__init__(id=id)
        self.raw = False
        self._said = ("", "")

    def compose(self) -> ComposeResult:
        yield Static(id="facts", markup=False)
        yield Static(id="step-text", markup=False)

    def show(self, node: Node | None, view: RunView, times: dict[Lineage, Times]) -> None:
        """Show a step, or the problem where there is none."""
        if node is None or node.parent is None:
            facts = "the problem" if view.request else ""
            text = view.request.problem if view.request else ""
        else:
            facts = _facts(node, view, times.get(node.lineage))
            text = as_text(node.text, raw=self.raw)
        before, self._said = self._said, (facts, text)
        if facts != before[0]:
            # Only another number, as a rank among ever more, takes no other room.
            same_room = _DIGIT.sub("0", facts) == _DIGIT.sub("0", before[0])
            line = Text(facts, style="bold")
            self.query_one("#facts", Static).update(line, layout=not same_room)
        if text != before[1]:
            self.query_one("#step-text", Static).update(Text(printable(text.strip())))


def _facts(node: Node, view: RunView, times: Times | None) -> str:
    name = ".".join(str(child + 1) for child in node.lineage)
    decision = f"{_GLYPHS.states[node.state]} {WORDS[node.state]}"
    if node.state is State.PRUNED and node.reason:
        decision += f": {one_line(node.reason)}"
    lines = [f"step {len(node.lineage)} · path {name}", decision, _hand(node), _scores(node, view)]
    costs = [f"{node.tokens} tokens"] if node.tokens else []
    if times is not None and times.finished is not None:
        costs.append(f"{clock(times.opened)} → {clock(times.finished)}")
    elif times is not None:
        costs.append(f"since {clock(times.opened)}")
    lines.append(" · ".join(costs))
    return "\n".join(filter(None, lines))


def _hand(node: Node) -> str:
    """Who wrote the step, and what was drafted for it in vain."""
    if node.hand is None:
        return ""
    line = f"{_GLYPHS.hands[node.hand]} {_HANDS[node.hand]}"
    if node.hand is Hand.REWRITTEN and node.draft:
        line += f": {one_line(node.draft)}"
    return line + (f" · chance {node.chance:.2f}" if node.chance is not None else "")


def _scores(node: Node, view: RunView) -> str:
    """The scores of the path up to here, and how the step ranks among those as deep."""
    score = node.score
    if score is None:
        return ""
    depth = len(node.lineage)
    rivals = [
        other.score
        for other in view.nodes.values()
        if len(other.lineage) == depth and other.score is not None
    ]
    rank = 1 + sum(rival > score for rival in rivals)
    path = [step.score for step in node.path() if step.score is not None]
    line = f"rank {rank} of {len(rivals)} at this depth · scores {_numbers(path)}"
    return line + (f" · its own {_numbers(node.scores)}" if len(node.scores) > 1 else "")


def _numbers(scores: Sequence[float]) -> str:
    return " ".join(f"{score:.2f}" for score in scores)
