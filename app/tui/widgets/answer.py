"""A solution while it is being written and after."""

from __future__ import annotations

from textual.widgets import Markdown
from textual.widgets.markdown import MarkdownStream

from app.tui.drawings import forget_drawings


class Answer(Markdown):
    """Markdown that is appended to where the new text goes on from the old, and replaced where
    it does not, as when another path takes the lead."""

    def __init__(self) -> None:
        super().__init__(open_links=False)
        self._shown = ""
        self._stream: MarkdownStream | None = None

    async def show(self, text: str) -> None:
        """Show this text."""
        if text == self._shown:
            return
        before, self._shown = self._shown, text
        if not text.startswith(before):
            await self.settle()
            return
        if self._stream is None:
            self._stream = self.get_stream(self)
        await self._stream.write(text[len(before) :])

    async def settle(self) -> None:
        """Render the whole once more: fences and lists may have been parsed half-way."""
        if self._stream is not None:
            stream, self._stream = self._stream, None
            await stream.stop()
        await self.update(self._shown)
        forget_drawings()
