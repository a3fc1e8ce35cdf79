"""One turn in the transcript: the question, the solution, and how it went."""

from __future__ import annotations

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Static

from app.narration import clock
from app.printable import one_line, printable
from app.tui.effort import Effort
from app.tui.messages import TurnClicked
from app.tui.shown import as_markdown, without_options
from app.tui.turn import Standing, Turn
from app.tui.widgets.answer import Answer

_SIGNS = {
    Standing.QUEUED: "○",
    Standing.RUNNING: "◐",
    Standing.STOPPED: "■",
    Standing.FAILED: "!",
    Standing.DONE: "★",
}


class TurnBlock(Vertical):
    """A turn. `show` brings it up to date."""

    def __init__(self, turn: Turn, *, raw: bool) -> None:
        super().__init__()
        self.turn = turn
        self._raw = raw
        self._settled: str | None = None
        """The text of a turn at rest that was rendered as a whole."""
        self._said: dict[str, Text] = {}

    def compose(self) -> ComposeResult:
        yield Static(printable(self.turn.problem), markup=False, classes="question")
        yield Static(classes="head", markup=False)
        yield Answer()
        yield Static(classes="foot", markup=False)

    async def on_mount(self) -> None:
        await self.show()

    async def show(self, *, raw: bool | None = None) -> None:
        """Show what the turn holds now."""
        if raw is not None:
            self._raw = raw
        turn = self.turn
        self.set_class(turn.active, "-active")
        self.set_class(turn.standing is Standing.FAILED, "-failed")
        self._say("head", self._head())
        self._say("foot", self._foot())
        answer = self.query_one(Answer)
        await answer.show(as_markdown(turn.text, raw=self._raw))
        settled = None if turn.active else turn.text
        if settled is not None and settled != self._settled:
            await answer.settle()
        self._settled = settled

    def _say(self, part: str, words: Text) -> None:
        if self._said.get(part) != words:
            self._said[part] = words
            line = self.query_one(f".{part}", Static)
            line.update(words)
            line.display = bool(words)

    def on_click(self, event: events.Click) -> None:
        self.post_message(TurnClicked(self.turn))

    def _head(self) -> Text:
        turn, view = self.turn, self.turn.view
        parts = [f"{_SIGNS[turn.standing]} {turn.effort.label}", self._standing()]
        place, branches = turn.branch
        if branches > 1:
            parts.append(f"◀ {place}/{branches} ▶")
        head = Text(" · ".join(parts), style="dim")
        if view.note:
            head.append(f"\n{one_line(view.note)}", style="italic dim")
        return head

    def _standing(self) -> str:
        view = self.turn.view
        match self.turn.standing:
            case Standing.QUEUED:
                return "waits for its turn"
            case Standing.RUNNING:
                return (
                    "best path so far"
                    if view.depth and self.turn.effort is not Effort.QUICK
                    else "working"
                )
            case Standing.STOPPED:
                return "stopped; what was written stays"
            case Standing.FAILED:
                return "failed"
            case Standing.DONE:
                return f"done in {clock(view.seconds)}" if view.seconds else "done"

    def _foot(self) -> Text:
        view = self.turn.view
        foot = Text()
        for warned in view.warnings:
            words = without_options(one_line(warned.message))
            foot.append(f"warning: {words}\n", style="yellow")
        if self.turn.lost:
            foot.append(f"the engine was lost ({one_line(self.turn.lost)}); ", style="yellow")
            foot.append("it was started again and the run went on\n", style="yellow")
        if view.failed is not None:
            words = without_options(f"{view.failed.message} {view.failed.advice}\n")
            foot.append(printable(words), style="bold")
        if view.answered is not None:
            foot.append(f"answer {one_line(view.answered.answer) or 'none'}", style="bold")
            if view.answered.score is not None:
                foot.append(f"   score {view.answered.score:.2f}", style="dim")
            votes = view.answered.votes
            if len(votes) > 1:
                tally = " · ".join(f"{one_line(v.answer) or 'none'} x{v.count}" for v in votes[:5])
                foot.append(f"   votes {tally}", style="dim")
        elif not self.turn.active and view.failed is None:
            foot.append("no answer", style="dim")
        if self.turn.refused:
            foot.append("A runs it anyway", style="dim")
        if self.turn.resumable:
            foot.append("   g goes on from here", style="dim")
        foot.rstrip()
        return foot
