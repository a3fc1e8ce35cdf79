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

from app.tui.drawings import forget_drawings
from app.tui.messages import BranchChosen, TurnClicked, TurnSelected
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
        Binding("left", "branch(-1)", "Branch before", id="transcript.branch_before"),
        Binding("right", "branch(1)", "Branch after", id="transcript.branch_after"),
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

    async def open(self, turns: Sequence[Turn], select: Turn | None = None) -> None:
        """Show these turns, and select one, by default the last. What is shown already stays."""
        async with self._changing:
            same = sum(a is b for a, b in zip(self._turns, turns, strict=False))
            kept = set(turns[:same])
            for block in self._blocks():
                if block.turn not in kept:
                    await block.remove()
            first = self._first if self._blocks() else max(0, len(turns) - _MOUNTED)
            new = turns[max(same, first) :]
            self._turns, self._first = list(turns), first
            await self.mount_all([TurnBlock(turn, raw=self.raw) for turn in new])
            while len(self._turns) - self._first > _MOUNTED and self._first < same:
                await self._blocks()[0].remove()
                self._first += 1
            for block in self._blocks():
                await block.show()
        forget_drawings()
        self._tell_hidden()
        self.anchor()
        chosen = select or (turns[-1] if turns else None)
        if chosen is not None:
            self.select(chosen)
        else:
            self.selected = None

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

    def action_branch(self, step: int) -> None:
        """To the branch beside, at the selected turn."""
        if self.selected is not None:
            self.post_message(BranchChosen(self.selected, step))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "branch":
            return self.selected is not None and self.selected.branch[1] > 1
        return True

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
