"""Writing the conversation into a file for reading elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from app.errors import CommandError
from app.export import FORMATS, document_of_session, export
from app.export.file import save
from app.printable import one_line
from app.store import Store


class ExportScreen(ModalScreen[Path | None]):
    """Asks for a path, writes the conversation there and gives the path, or None."""

    CSS_PATH = "dialog.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "close", "Close")]

    def __init__(self, store: Store, session: int) -> None:
        super().__init__()
        self._store = store
        self._session = session
        self._asked: Path | None = None
        """The file that is there already, of which the user was told."""

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static("Export the conversation: .html with its trees, .md or .json")
            yield Input(f"sapwood-{self._session}.html", id="path", select_on_focus=False)
            yield Static(classes="trouble", markup=False)

    def action_close(self) -> None:
        self.dismiss(None)

    @on(Input.Submitted, "#path")
    def _write(self, event: Input.Submitted) -> None:
        path = Path(event.value.strip()).expanduser()
        format = FORMATS.get(path.suffix.lower())
        if format is None:
            self._say(f"Name a file that ends in {', '.join(FORMATS)}.")
        elif path.exists() and path != self._asked:
            self._asked = path
            self._say("It is there already. Enter again writes over it.")
        else:
            try:
                save(path, export(document_of_session(self._store, self._session), format))
            except CommandError as error:
                self._say(one_line(error.message))
                return
            self.dismiss(path)

    def _say(self, words: str) -> None:
        self.query_one(".trouble", Static).update(words)
