"""Where questions are written."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.widgets import TextArea

from app.tui.messages import Asked

_LONGEST = 200_000
"""Characters. No model here reads more, and editing more is slow."""


class Composer(TextArea):
    """A few lines of text. Enter sends; up and down leave the text for earlier questions."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "send", "Send", id="composer.send"),
        Binding(
            "ctrl+j,shift+enter", "new_line", "New line", key_display="^j", id="composer.new_line"
        ),
    ]

    def __init__(self, id: str) -> None:
        super().__init__(
            id=id,
            soft_wrap=True,
            compact=True,
            highlight_cursor_line=False,
            placeholder="Ask for something to be worked out. Each question stands alone.",
        )
        self._asked: list[str] = []
        self._place = 0
        """In what was asked; the end is the text being written."""
        self._draft = ""

    def write(self, text: str) -> None:
        """Put a text in, ready to be edited."""
        self.text = text
        self.move_cursor(self.document.end)
        self.focus()

    def remember(self, text: str) -> None:
        """Add to the history."""
        if not self._asked or self._asked[-1] != text:
            self._asked.append(text)
        self._place = len(self._asked)

    def action_send(self) -> None:
        text = self.text.strip()
        if not text:
            return
        self.remember(text)
        self.text = ""
        self.post_message(Asked(text))

    def action_new_line(self) -> None:
        self.insert("\n")
        self.scroll_cursor_visible()

    def action_cursor_up(self, select: bool = False) -> None:
        if select or not self.cursor_at_first_line:
            super().action_cursor_up(select)
        else:
            self._recall(self._place - 1)

    def action_cursor_down(self, select: bool = False) -> None:
        if select or not self.cursor_at_last_line:
            super().action_cursor_down(select)
        else:
            self._recall(self._place + 1)

    def _recall(self, place: int) -> None:
        if not 0 <= place <= len(self._asked):
            return
        if self._place == len(self._asked):
            self._draft = self.text
        self._place = place
        self.text = self._asked[place] if place < len(self._asked) else self._draft
        self.move_cursor(self.document.end)

    async def _on_key(self, event: events.Key) -> None:
        if event.key == "enter":  # which a text area takes for a new line before any binding
            event.stop()
            event.prevent_default()
            self.action_send()

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()  # the base class would insert it once more
        self.insert_text(event.text)

    def insert_text(self, text: str) -> None:
        """Insert a text of any length; one that is too long is refused, and the user told."""
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        room = _LONGEST - len(self.text)
        if len(text) > room:
            self.notify(
                f"The text has {len(text):,} characters; there is room for {room:,}.",
                severity="warning",
                markup=False,
            )
            return
        self.insert(text)
        self.scroll_cursor_visible()
