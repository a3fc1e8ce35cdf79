"""The keys that do something now, on one line."""

from __future__ import annotations

from dataclasses import dataclass

from rich.text import Text
from textual import events
from textual.screen import Screen
from textual.widget import Widget

from app.tui.fitting import fitting

_GAP = 2


@dataclass(frozen=True, slots=True)
class _Hint:
    key: str
    label: str
    words: str
    last: bool
    """Stands at the end of the line, and goes only when nothing else is left."""

    @property
    def text(self) -> str:
        return f"{self.label} {self.words}"


class KeyHints(Widget):
    """As many keys as there is room for, whole: those of the focused widget first, and help.

    A click on one does what the key does.
    """

    DEFAULT_CSS = """
    KeyHints { dock: bottom; height: 1; background: $footer-background; color: $footer-foreground; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._shown: list[tuple[int, int, str]] = []
        """Where each hint begins and ends, and its key."""

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._changed)

    def _changed(self, screen: Screen) -> None:
        self.refresh()

    def render(self) -> Text:
        hints = self._hints()
        hints.sort(key=lambda hint: not hint.last)
        places = fitting([hint.text for hint in hints], self.size.width - 2, gap=_GAP)
        kept = [hints[place] for place in places]
        line = Text(" ", no_wrap=True)
        self._shown = []
        for hint in sorted(kept, key=lambda hint: hint.last):
            if self._shown:
                line.append(" " * _GAP)
            begin = line.cell_len
            line.append(hint.label, "bold")
            line.append(f" {hint.words}")
            self._shown.append((begin, line.cell_len, hint.key))
        return line

    def _hints(self) -> list[_Hint]:
        hints: dict[str, _Hint] = {}
        for active in self.screen.active_bindings.values():
            binding = active.binding
            palette = binding.key == self.app.COMMAND_PALETTE_BINDING
            if (binding.show or palette) and active.enabled:
                label = self.app.get_key_display(binding)
                last = binding.action == "help"
                hint = _Hint(binding.key, label, binding.description, last)
                hints.setdefault(binding.action, hint)
        return list(hints.values())

    def on_click(self, event: events.Click) -> None:
        for begin, end, key in self._shown:
            if begin <= event.x < end:
                self.app.simulate_key(key)
