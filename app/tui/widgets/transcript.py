"""The conversation."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Static

from app.tui.messages import TurnClicked, TurnSelected
from app.tui.turn import Turn
from app.tui.widgets.turn_block import TurnBlock

_MOUNTED = 20
"""Turns that have widgets: a turn takes about ten, and a terminal's change of focus restyles all
there are."""
_MORE = 20
"""Turns that are shown when the user asks for earlier ones."""


class Transcript(VerticalScroll):
    """The newest turns, and earlier ones on demand. One of them is selected."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "select(-1)", "Earlier", show=False, id="transcript.up"),
        Binding("down,j", "select(1)", "Later", show=False, id="transcript.down"),
        Binding("home", "earlier", "First", show=False, id="transcript.earlier"),
    ]

    def __init__(self, id: str) -> None:
        super().__init__(id=id)
        self._turns: list[Turn] = []
        self._first = 0
        """The first turn that has widgets."""
        self.selected: Turn | None = None
        self.raw = False
        self._changing = asyncio.Lock()
        """A block must not be removed while it is brought up to date, which would never end."""

    def compose(self) -> ComposeResult:
        yield Static(id="earlier", markup=False)

    def on_mount(self) -> None:
        self.anchor()
        self._tell_hidden()

    @property
    def turns(self) -> Sequence[Turn]:
        return self._turns

    async def add(self, turn: Turn) -> None:
        """Add a turn at the end and select it."""
        async with self._changing:
            self._turns.append(turn)
            await self.mount(TurnBlock(turn, raw=self.raw))
            while len(self._turns) - self._first > _MOUNTED:
                await self._blocks()[0].remove()
                self._first += 1
        self.select(turn)
        self.anchor()
        self._tell_hidden()

    async def open(self, turns: Sequence[Turn]) -> None:
        """Show another conversation."""
        async with self._changing:
            await self.query(TurnBlock).remove()
            self._turns = list(turns)
            self._first = max(0, len(turns) - _MOUNTED)
            self.selected = None
            await self.mount_all([TurnBlock(turn, raw=self.raw) for turn in turns[self._first :]])
        self._tell_hidden()
        self.anchor()
        if turns:
            self.select(turns[-1])

    async def show(self, turn: Turn) -> None:
        """Bring the turn up to date if it is to be seen."""
        async with self._changing:
            if (block := self._block(turn)) is not None:
                await block.show()

    async def toggle_raw(self) -> None:
        """Show maths as its source, or no more."""
        self.raw = not self.raw
        async with self._changing:
            for block in self._blocks():
                await block.show(raw=self.raw)

    def select(self, turn: Turn) -> None:
        """Mark a turn as the one that commands are for."""
        if turn is self.selected:
            return
        self.selected = turn
        for block in self._blocks():
            block.set_class(block.turn is turn, "-selected")
        self.post_message(TurnSelected(turn))

    @on(TurnClicked)
    def _clicked(self, event: TurnClicked) -> None:
        event.stop()
        self.select(event.turn)

    def action_select(self, step: int) -> None:
        if self.selected is None:
            return
        place = self._turns.index(self.selected) + step
        if self._first <= place < len(self._turns):
            self.select(self._turns[place])
            if (block := self._block(self._turns[place])) is not None:
                block.scroll_visible(animate=False)

    async def action_earlier(self) -> None:
        """Show the turns before the first; at the very first go to the top."""
        async with self._changing:
            start = max(0, self._first - _MORE)
            earlier = [TurnBlock(turn, raw=self.raw) for turn in self._turns[start : self._first]]
            self._first = start
            if earlier:
                await self.mount_all(earlier, after=0)
        self._tell_hidden()
        self.scroll_home(animate=False)

    def _tell_hidden(self) -> None:
        earlier = self.query_one("#earlier", Static)
        earlier.display = self._first > 0
        earlier.update(f"▲ {self._first} earlier (Home shows them)")

    def _blocks(self) -> list[TurnBlock]:
        return list(self.query_children(TurnBlock))

    def _block(self, turn: Turn) -> TurnBlock | None:
        return next((block for block in self._blocks() if block.turn is turn), None)
