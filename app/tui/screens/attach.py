"""Putting the text of a file into the question."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

_LARGEST = 1 << 20
"""Bytes; the composer itself takes less, and says so."""


class AttachScreen(ModalScreen[str | None]):
    """Asks for a path and gives the text of the file, or None."""

    CSS_PATH = "dialog.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "close", "Close")]

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static("Attach a text file", markup=False)
            yield Input(placeholder="Path of the file", id="path")
            yield Static(classes="trouble", markup=False)

    def action_close(self) -> None:
        self.dismiss(None)

    @on(Input.Submitted, "#path")
    async def _read(self, event: Input.Submitted) -> None:
        path = Path(event.value.strip()).expanduser()
        try:
            text = await asyncio.to_thread(_text_of, path)
        except (OSError, ValueError) as error:
            words = error.strerror if isinstance(error, OSError) else str(error)
            self.query_one(".trouble", Static).update(f"It cannot be attached: {words}.")
            return
        self.dismiss(text)


def _text_of(path: Path) -> str:
    """The text of a file.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no text, or too long.
    """
    if not path.is_file():  # a pipe or a device might never end
        raise ValueError("there is no such file")
    if path.stat().st_size > _LARGEST:
        raise ValueError("it is longer than 1 MiB")
    try:
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8 text") from None
