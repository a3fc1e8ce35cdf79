"""The choice of effort, with what it costs."""

from __future__ import annotations

from collections.abc import Mapping

from rich.text import Text
from textual import events
from textual.reactive import var
from textual.widget import Widget

from app.tui.costs import Cost
from app.tui.effort import Effort, Models
from app.tui.messages import EffortChosen


class EffortBar(Widget):
    """One line: the three efforts, the chosen one marked, and what it is likely to cost."""

    effort: var[Effort] = var(Effort.THINK)
    editing: var[bool] = var(False)
    """Whether what is sent takes the place of an earlier question."""

    def __init__(self, models: Models) -> None:
        super().__init__()
        self._models = models
        self._costs: Mapping[Effort, Cost] = {}
        self._took: Mapping[Effort, float] = {}

    def watch_effort(self) -> None:
        self.refresh()

    def watch_editing(self) -> None:
        self.refresh()

    def tell(
        self, models: Models, costs: Mapping[Effort, Cost], took: Mapping[Effort, float]
    ) -> None:
        """Say what these models cost.

        Args:
            costs: by the plan, of the efforts for which there is one.
            took: seconds of earlier questions, which tell more.
        """
        self._models, self._costs, self._took = models, costs, took
        self.refresh()

    def render(self) -> Text:
        line = Text(no_wrap=True, overflow="ellipsis")
        for effort in Effort:
            chosen = effort is self.effort
            label = f"[{effort.label}]" if chosen else f" {effort.label} "
            line.append(label, style="bold" if chosen else "dim")
        paths = self._models.paths(self.effort)
        line.append("  one path" if paths == 1 else f"  {paths} paths", style="dim")
        cost = self._costs.get(self.effort, Cost())
        if words := cost.words(self._seconds()):
            line.append(f" · {words}", style="bold" if cost.trouble else "dim")
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

    def _seconds(self) -> float | None:
        """What the effort took, or by the plan would take in proportion to one that was tried."""
        if (seconds := self._took.get(self.effort)) is not None:
            return seconds
        least = {effort: cost.least for effort, cost in self._costs.items() if cost.least}
        tried = next((effort for effort in self._took if effort in least), None)
        if tried is None or self.effort not in least:
            return None
        return self._took[tried] * least[self.effort] / least[tried]
