"""How a node looks on one line: a glyph for its state, a bar for its score."""

from __future__ import annotations

from dataclasses import dataclass

from app.printable import encodable, one_line
from app.run_view import Hand, Node, State

BAR_CELLS = 5


@dataclass(frozen=True, slots=True)
class Glyphs:
    """A set of signs that an encoding has. Every state has its own, so colour is never needed."""

    encoding: str
    states: dict[State, str]
    hands: dict[Hand, str]
    """Who wrote a step, where a draft model writes too."""
    full: str
    empty: str
    branch: str
    last: str
    pipe: str
    dot: str
    more: str

    def label(self, node: Node, *, scored: bool) -> str:
        """What stands before the words of a node: its state and, in a search with scores, its
        score or the room for it."""
        state = self.states[node.state]
        if node.hand is not None:
            state += self.hands[node.hand]
        return f"{state} {self.score(node.score)} {self.dot}" if scored else f"{state} {self.dot}"

    def score(self, score: float | None) -> str:
        """Bar and number, always of the same width."""
        if score is None:
            return " " * (BAR_CELLS + 5)
        full = min(BAR_CELLS, max(0, round(score * BAR_CELLS)))
        return f"{self.full * full}{self.empty * (BAR_CELLS - full)} {score:.2f}"

    def one_line(self, text: str) -> str:
        return encodable(one_line(text), self.encoding)

    def folded(self, count: int, best: float | None) -> str:
        """The line that stands for pruned nodes."""
        return f"+{count} pruned" + (f" (best {best:.2f})" if best is not None else "")


def glyphs_for(encoding: str | None) -> Glyphs:
    """The best set that can be written in the encoding."""
    try:
        "".join((*_UNICODE.values(), *_HANDS.values(), "▰▱├└│─·…")).encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return Glyphs("ascii", _ASCII, _ASCII_HANDS, "#", "-", "|-", "`-", "| ", "-", "...")
    return Glyphs(encoding or "ascii", _UNICODE, _HANDS, "▰", "▱", "├─", "└─", "│ ", "·", "…")


_UNICODE = {
    State.QUEUED: "○",
    State.WRITING: "◐",
    State.DRAFT: "◌",
    State.FINISHED: "◔",
    State.SCORED: "◉",
    State.KEPT: "●",
    State.PRUNED: "✕",
    State.COMPLETED: "☆",
    State.ANSWER: "★",
}
_HANDS = {Hand.DRAFTED: "┄", Hand.ACCEPTED: "≈", Hand.REWRITTEN: "↻"}
_ASCII_HANDS = {Hand.DRAFTED: "_", Hand.ACCEPTED: "^", Hand.REWRITTEN: "%"}
_ASCII = {
    State.QUEUED: ".",
    State.WRITING: ">",
    State.DRAFT: "~",
    State.FINISHED: "?",
    State.SCORED: "o",
    State.KEPT: "*",
    State.PRUNED: "x",
    State.COMPLETED: "+",
    State.ANSWER: "=",
}
