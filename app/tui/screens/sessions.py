"""The conversations of before: found, opened, renamed, deleted and brought back."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from app.errors import CommandError
from app.printable import one_line
from app.store import Session, Store
from app.tui.widgets.key_hints import KeyHints


class SessionsScreen(ModalScreen[int | None]):
    """Gives the number of the conversation to open, or None."""

    CSS_PATH = "sessions.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", "Close"),
        Binding("down", "to_list", "List", show=False),
        Binding("f2", "rename", "Rename"),
        Binding("delete", "delete", "Delete"),
        Binding("ctrl+z", "undo", "Undo delete", priority=True),
    ]

    def __init__(self, store: Store) -> None:
        super().__init__()
        self._store = store
        self._renaming: int | None = None

    def compose(self) -> ComposeResult:
        with Vertical(id="sessions"):
            yield Input(placeholder="Search all conversations", id="words")
            yield OptionList(id="list", markup=False)
            yield Static("There are no conversations yet.", id="none", markup=False)
        yield KeyHints()

    def on_mount(self) -> None:
        self._words = self.query_one("#words", Input)
        self._list = self.query_one("#list", OptionList)
        self._fill()

    def _fill(self) -> None:
        """List what matches the words, or all."""
        self._list.clear_options()
        words = "" if self._renaming is not None else self._words.value.strip()
        try:
            options = self._found(words) if words else self._all()
        except CommandError as error:
            self._complain(error)
            return
        self._list.add_options(options)
        self._list.highlighted = 0 if options else None
        self._list.display = bool(options)
        self.query_one("#none").display = not options

    def _all(self) -> list[Option]:
        return [_option(session, "") for session in self._store.sessions()]

    def _found(self, words: str) -> list[Option]:
        excerpts: dict[int, tuple[Session, str]] = {}
        for found in self._store.search(words):
            excerpts.setdefault(found.session.id, (found.session, found.excerpt))
        return [_option(session, excerpt) for session, excerpt in excerpts.values()]

    @property
    def _chosen(self) -> int | None:
        option = self._list.highlighted_option
        return int(option.id) if option is not None and option.id is not None else None

    @on(Input.Changed, "#words")
    def _search(self) -> None:
        if self._renaming is None:
            self._fill()

    @on(Input.Submitted, "#words")
    def _entered(self, event: Input.Submitted) -> None:
        if self._renaming is None:
            self._open()
            return
        session, self._renaming = self._renaming, None
        title = event.value.strip()
        self._words.value = ""
        self._words.placeholder = "Search all conversations"
        if title:
            self._try(lambda: self._store.rename(session, title))
        self._list.focus()

    @on(OptionList.OptionSelected, "#list")
    def _open(self) -> None:
        if self._chosen is not None:
            self.dismiss(self._chosen)

    def action_close(self) -> None:
        self.dismiss(None)

    def action_to_list(self) -> None:
        self._list.focus()

    def action_rename(self) -> None:
        if (session := self._chosen) is not None:
            self._renaming = session
            self._words.placeholder = "The new title"
            self._words.value = self._store.session(session).title
            self._words.focus()

    def action_delete(self) -> None:
        if (session := self._chosen) is not None:
            self._try(lambda: self._store.delete(session))
            self.notify("Deleted. Ctrl+Z brings it back.", timeout=5)

    def action_undo(self) -> None:
        self._try(self._store.undo)

    def _try(self, change: Callable[[], object]) -> None:
        try:
            change()
        except CommandError as error:
            self._complain(error)
        self._fill()

    def _complain(self, error: CommandError) -> None:
        self.notify(one_line(error.message), severity="error", markup=False)


def _option(session: Session, excerpt: str) -> Option:
    day = session.updated[:16].replace("T", " ")
    questions = session.messages // 2
    line = f"{day}  {one_line(session.title) or 'untitled'}  ({questions})"
    return Option(Content(f"{line}\n    {one_line(excerpt)}" if excerpt else line), str(session.id))
