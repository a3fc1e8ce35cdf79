"""Where in its time a finished run is shown."""

from __future__ import annotations

from rich.text import Text
from textual import events
from textual.reactive import var
from textual.widget import Widget

from app.narration import clock
from app.tui.messages import Sought


class Scrubber(Widget):
    """One line: playing or not, the time, and a bar to click on."""

    at: var[float] = var(0.0)
    length: var[float] = var(0.0)
    playing: var[bool] = var(False)

    def watch_at(self) -> None:
        self.refresh()

    def watch_length(self) -> None:
        self.refresh()

    def watch_playing(self) -> None:
        self.refresh()

    def render(self) -> Text:
        label = self._label()
        cells = self._cells()
        full = round(cells * self.at / self.length) if self.length else 0
        return Text.assemble(label, ("━" * full, "bold"), ("─" * (cells - full), "dim"))

    def on_click(self, event: events.Click) -> None:
        place = event.x - len(self._label())
        if place >= 0:
            self.post_message(Sought(min(1.0, place / max(1, self._cells() - 1))))

    def _label(self) -> str:
        return f"{'▶' if self.playing else '‖'} {clock(self.at)} / {clock(self.length)} "

    def _cells(self) -> int:
        return max(1, self.size.width - len(self._label()))
