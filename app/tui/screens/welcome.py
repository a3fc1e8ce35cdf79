"""The first screen of a first start: one key to a solved problem."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.events import Key, Paste
from textual.screen import ModalScreen
from textual.widgets import Static

from app.tui.effort import Models
from app.tui.widgets.key_hints import KeyHints

SAMPLE = (
    "Lily buys 2 bags of 5 flowers each. She gives 3 flowers to Leo. "
    "How many flowers does Lily have now?"
)
_WORDS = """\
Sapwood works problems out in steps, on this machine. A small generator writes several next \
steps, a verifier scores them, and you watch the tree grow.

With it comes the seedling, a demonstration model a few megabytes large. It knows simple \
arithmetic stories and nothing else, and it errs. A story like this one:
"""


class WelcomeScreen(ModalScreen[str | None]):
    """Gives the sample to solve, what the user began to type instead, or None."""

    CSS_PATH = "welcome.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "sample", "Solve this"),
        Binding("escape", "dismiss", "Begin without"),
    ]

    def __init__(self, models: Models) -> None:
        super().__init__()
        self._models = models

    def compose(self) -> ComposeResult:
        with Vertical(id="welcome"):
            yield Static("Welcome", id="welcome-title", markup=False)
            yield Static(_WORDS, markup=False)
            yield Static(SAMPLE, id="sample", markup=False)
            yield Static("Enter solves it.  Esc begins without.  F1 is help at any time.")
        yield KeyHints()

    def on_key(self, event: Key) -> None:
        if event.is_printable and event.character:
            event.stop()
            self.dismiss(event.character)

    def on_paste(self, event: Paste) -> None:
        event.stop()
        self.dismiss(event.text)

    def action_sample(self) -> None:
        self.dismiss(SAMPLE)
