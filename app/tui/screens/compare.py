"""Two paths of a tree side by side, step by step."""

from __future__ import annotations

from itertools import zip_longest
from typing import ClassVar

from rich.console import Group
from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from app.glyphs import glyphs_for
from app.printable import printable
from app.run_view import Node
from app.tui.shown import as_text

_GLYPHS = glyphs_for("utf-8")


def part(one: list[Node], other: list[Node]) -> int:
    """How many steps two paths have in common."""
    return sum(a is b for a, b in zip(one, other, strict=False))


def comparison(one: Node, other: Node, *, raw: bool) -> Group:
    """The paths to two nodes as two columns, a row a step; what they share is there once."""
    paths = one.path(), other.path()
    shared = part(*paths)
    common = [_step(node, raw=raw) for node in paths[0][:shared]]
    table = Table(box=None, expand=True, padding=(0, 1), show_header=False)
    table.add_column(ratio=1)
    table.add_column(ratio=1)
    rest = zip_longest(paths[0][shared:], paths[1][shared:])
    for place, (left, right) in enumerate(rest):
        table.add_row(*(_step(n, raw=raw, differs=place == 0) for n in (left, right)))
    title = f"They have {shared} step{'' if shared == 1 else 's'} in common."
    return Group(Text(f"{title}\n", style="bold"), *common, table)


def _step(node: Node | None, *, raw: bool, differs: bool = False) -> Text:
    if node is None:
        return Text("(has ended)", style="dim")
    depth = len(node.lineage)
    head = f"{'▶ ' if differs else ''}{depth}  {_GLYPHS.states[node.state]} "
    head += _GLYPHS.score(node.score).strip()
    words = printable(as_text(node.text, raw=raw).strip())
    return Text.assemble((f"{head}\n", "bold reverse" if differs else "bold"), f"{words}\n")


class CompareScreen(ModalScreen[None]):
    """Shows where two paths part and how their scores go on."""

    CSS_PATH = "help.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,enter", "dismiss", "Close")]

    def __init__(self, one: Node, other: Node, *, raw: bool) -> None:
        super().__init__()
        self._shown = comparison(one, other, raw=raw)

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="page"):
            yield Static(self._shown, id="comparison", markup=False)

    def on_mount(self) -> None:
        self.query_one(".page").focus()
