"""Asking whether the user is sure."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from app.tui.widgets.key_hints import KeyHints


class ConfirmScreen(ModalScreen[bool]):
    """Says what a thing may lead to. Only a key that is pressed for nothing else agrees."""

    CSS_PATH = "dialog.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "dismiss(True)", "Yes"),
        Binding("escape,n", "dismiss(False)", "No"),
    ]

    def __init__(self, question: str, about: str) -> None:
        super().__init__()
        self._question = question
        self._about = about

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(self._question, markup=False)
            yield Static(self._about, classes="hint", markup=False)
            yield Static("y does it, Esc does not.", classes="hint", markup=False)
        yield KeyHints()
