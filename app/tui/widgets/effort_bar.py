"""The choice of effort, with what it costs."""

from __future__ import annotations

from rich.text import Text
from textual import events
from textual.reactive import var
from textual.widget import Widget

from app.narration import clock
from app.tui.effort import Effort
from app.tui.messages import EffortChosen
from app.tui.turn import Standing, Turn


class EffortBar(Widget):
    """One line: the three efforts, the chosen one marked, and its cost as far as it is known."""

    effort: var[Effort] = var(Effort.THINK)
    editing: var[bool] = var(False)
    """Whether what is sent takes the place of an earlier question."""

    def __init__(self) -> None:
        super().__init__()
        self._seconds: dict[Effort, float] = {}
        """What the last question of each kind took."""

    def watch_effort(self) -> None:
        self.refresh()

    def watch_editing(self) -> None:
        self.refresh()

    def learn(self, turn: Turn) -> None:
        """Take a finished turn for an estimate of the next."""
        finished = turn.view.finished
        if turn.standing is Standing.DONE and finished is not None:
            self._seconds[turn.effort] = finished.counters.seconds or finished.at
            self.refresh()

    def render(self) -> Text:
        line = Text(no_wrap=True, overflow="ellipsis")
        for effort in Effort:
            chosen = effort is self.effort
            label = f"[{effort.label}]" if chosen else f" {effort.label} "
            line.append(label, style="bold" if chosen else "dim")
        line.append(f"  {self._cost()}", style="dim")
        if self.editing:
            line.append(" · sending begins a branch, Esc does not", style="bold")
        return line

    def on_click(self, event: events.Click) -> None:
        place = event.x
        for effort in Effort:
            place -= len(effort.label) + 2
            if place < 0:
                self.post_message(EffortChosen(effort))
                return

    def _cost(self) -> str:
        paths = self.effort.value
        cost = "one path, no verifier" if paths == 1 else f"{paths} paths"
        if (seconds := self._seconds.get(self.effort)) is not None:
            return f"{cost} · about {clock(seconds)}"
        known = [(effort, took) for effort, took in self._seconds.items()]
        if not known:
            return cost
        # Paths share each step of the engine, so this is an upper bound.
        effort, took = max(known, key=lambda pair: pair[0].value)
        return f"{cost} · up to about {clock(took * max(1.0, paths / effort.value))}"
