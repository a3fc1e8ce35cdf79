"""What there is to know, and every key."""

from __future__ import annotations

from typing import ClassVar

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from app.glyphs import glyphs_for
from app.tui.screens.chat import ChatScreen
from app.tui.widgets.composer import Composer
from app.tui.widgets.node_detail import WORDS
from app.tui.widgets.reasoning_tree import ReasoningTree
from app.tui.widgets.run_pane import RunPane
from app.tui.widgets.transcript import Transcript

_ABOUT = """\
Sapwood answers by searching over steps of reasoning: a generator writes several next steps, a \
verifier scores them, the best go on. Each question is solved by itself; what was said before is \
not read again.

Effort: quick follows one path; think searches several (8 with the seedling) with the verifier; \
deep searches four times as many. Its cost stands beside it: ≈ is an estimate, from \
earlier questions and the plan; before there are any, ≥ is what the longest paths take at best.
Tab goes from the composer to the conversation and to the tree. Hold Shift to select text with \
the mouse where the terminal asks for it."""


class HelpScreen(ModalScreen[None]):
    """Closes with any of the usual keys."""

    CSS_PATH = "help.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,f1,enter", "dismiss", "Close")]

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="page"):
            yield Static(_ABOUT, markup=False)
            for title, bindings in (
                ("Everywhere", [*self.app.BINDINGS, ("ctrl+p", "", "Commands")]),
                ("Chat", ChatScreen.BINDINGS),
                ("Composer", Composer.BINDINGS),
                ("Conversation", Transcript.BINDINGS),
                ("Reasoning", RunPane.BINDINGS),
                ("Tree", ReasoningTree.BINDINGS),
            ):
                yield Static(_keys(title, bindings))
            yield Static(_signs())

    def on_mount(self) -> None:
        self.query_one(".page").focus()


def _keys(title: str, bindings: list[BindingType]) -> Table:
    """Key, what it does, and the id by which settings give it another key."""
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for column in ("key", "does", "id"):
        table.add_column(column, style="dim" if column == "id" else "", no_wrap=column == "key")
    table.show_header = False
    for binding in bindings:
        if isinstance(binding, Binding):
            table.add_row(
                binding.key_display or binding.key.replace(",", ", "),
                binding.description,
                binding.id or "",
            )
        else:
            table.add_row(binding[0], binding[2] if len(binding) > 2 else "", "")
    return table


def _signs() -> Text:
    signs = glyphs_for("utf-8").states
    lines = [f"{signs[state]}  {words}" for state, words in WORDS.items()]
    return Text.assemble(("Signs\n", "bold"), "\n".join(lines))
