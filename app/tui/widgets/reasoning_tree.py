"""The reasoning tree of a run, live."""

from __future__ import annotations

from collections.abc import Hashable

from rich.style import Style
from rich.text import Text
from textual import events
from textual.cache import LRUCache
from textual.geometry import Region, Size
from textual.reactive import Reactive, var
from textual.scroll_view import ScrollView
from textual.strip import Strip

from app.glyphs import glyphs_for
from app.run_view import Node, RunView, State
from app.tui.feed import Change
from app.tui.keys import TREE
from app.tui.messages import FollowChanged, StepHighlighted
from app.tui.rows import Key, Row, Rows
from app.tui.shown import as_line
from app.tui.turn import Folds

_GLYPHS = glyphs_for("utf-8")
_STRIPS = 2000
"""Drawn rows that are kept."""
_MARK = "◆"
_SLIDE = 8
"""Columns by which the tree moves aside when the cursor is deep in it."""


class ReasoningTree(ScrollView, can_focus=True):
    """One row a step, the dead branches of each parent folded into one.

    Only rows that are to be seen are drawn, and only when they look different: thousands of nodes
    cost no more than a screen of them. What the user did is kept in `Folds`, and where the cursor
    is by the name of its row, so that nothing hangs on the rows themselves.
    """

    BINDINGS = TREE
    COMPONENT_CLASSES = {f"step--{state.name.lower()}" for state in State} | {
        "step--leads",
        "step--guides",
        "step--cursor",
    }

    follow: var[bool] = var(True)
    marked: var[Node | None] = var[Node | None](None)
    """The step that another is to be compared with."""
    virtual_size: Reactive[Size] = Reactive(Size(0, 0))
    """Rows come and go all the time, and where other widgets are does not hang on them."""

    def __init__(self, id: str) -> None:
        super().__init__(id=id)
        self.raw = False
        self._rows = Rows(RunView(), Folds())
        self._cursor: Key | None = None
        self._told: Key | None = None
        """The row that was last told of as the one under the cursor."""
        self._strips: LRUCache[Hashable, Strip] = LRUCache(_STRIPS)

    # What the screen calls

    def open(self, view: RunView, folds: Folds) -> None:
        """Show a run from here on. Where it is the one that is shown, the cursor stays."""
        if folds is not self._rows.folds:  # another run
            self._cursor = None
            self._strips.clear()
        if view is not self._rows.view:
            self.marked = None
        self._rows = Rows(view, folds)
        self._relocate()
        self._ride()
        self._tell()

    def sync(self, change: Change) -> None:
        """Bring the rows up to date with the view."""
        if change.everything:
            self.open(self._rows.view, self._rows.folds)
            return
        if self._rows.update(change.nodes):
            self._relocate()
        else:
            self._refresh_rows(change)
        self._ride()
        self._tell()

    def go_to(self, node: Node) -> None:
        """Put the cursor on a node, unfolding whatever hides it."""
        if self._rows.place((node.lineage, False)) is None:
            self._rows.reveal(node)
            self._relocate()
        self._move_to((node.lineage, False))

    def refold(self) -> None:
        """Fold or unfold after a change of the folds."""
        self._rows.build()
        self._relocate()
        self._tell()

    @property
    def rows(self) -> list[Row]:
        """The rows from top to bottom."""
        return self._rows.lines

    @property
    def cursor_line(self) -> int | None:
        """Where the cursor is."""
        return self._rows.place(self._cursor) if self._cursor is not None else None

    @property
    def node(self) -> Node | None:
        """The node under the cursor."""
        return self.rows[line].node if (line := self.cursor_line) is not None else None

    def watch_marked(self) -> None:
        self.refresh()

    # The cursor

    def _ride(self) -> None:
        """In follow mode, go where the best path is."""
        leader = self._rows.view.leader
        if self.follow and leader is not None:
            self._move_to((leader.lineage, False))

    def _relocate(self) -> None:
        """The rows have changed: the cursor stays on its row, or goes to the nearest above."""
        key = self._cursor
        while key is not None and self._rows.place(key) is None:
            lineage, fold = key
            key = (lineage if fold else lineage[:-1], False) if lineage else None
        if key is None and self._cursor is not None and self.rows:
            key = self.rows[0].key
        self._cursor = key
        self.virtual_size = Size(self.size.width, len(self.rows))
        self._scroll_update(self.virtual_size)
        self._scroll_to_cursor()
        self.refresh()

    def _move_to(self, key: Key) -> None:
        if key != self._cursor and self._rows.place(key) is not None:
            before, self._cursor = self._slide, key
            self._scroll_to_cursor()
            self.refresh()
            if before != self._slide:
                self._strips.clear()
        self._tell()

    def _scroll_to_cursor(self) -> None:
        if (line := self.cursor_line) is not None:
            self.scroll_to_region(Region(0, line, 1, 1), animate=False, force=True)

    def _tell(self) -> None:
        if self._cursor != self._told:
            self._told = self._cursor
            self.post_message(StepHighlighted())

    def _go(self, line: int) -> None:
        """The user goes to a line."""
        self._let_go()
        if self.rows:
            self._move_to(self.rows[max(0, min(line, len(self.rows) - 1))].key)

    def _let_go(self) -> None:
        """The user moves, so the tree no longer does."""
        if self.follow:
            self.follow = False
            self.post_message(FollowChanged(False))

    def action_move(self, lines: int) -> None:
        here = self.cursor_line
        self._go(here + lines if here is not None else 0)

    def action_page(self, pages: int) -> None:
        self.action_move(pages * max(1, self.size.height - 1))

    def action_first(self) -> None:
        self._go(0)

    def action_last(self) -> None:
        self._go(len(self.rows) - 1)

    def action_sibling(self, step: int) -> None:
        """To the next row of the same parent."""
        line = self.cursor_line
        if line is None:
            return
        parent = self._above(self.rows[line])
        beside = [place for place, row in enumerate(self.rows) if self._above(row) is parent]
        place = beside.index(line) + step
        if 0 <= place < len(beside):
            self._go(beside[place])

    @staticmethod
    def _above(row: Row) -> Node | None:
        return row.node if row.dead else row.node.parent

    # Folding

    def action_fold(self) -> None:
        """Open a fold, or hide or show what is below a node."""
        line = self.cursor_line
        if line is None:
            return
        self._let_go()
        row = self.rows[line]
        folds = self._rows.folds
        if row.dead:
            folds.unfolded.add(row.node.lineage)
            self._cursor = (row.dead[0].lineage, False)
        elif row.node.children:
            folds.collapsed ^= {row.node.lineage}
        self.refold()

    def action_close(self) -> None:
        """Hide what is below a node; where nothing is, go to the node above."""
        line = self.cursor_line
        if line is None:
            return
        node = self.rows[line].node
        hidden = not node.children or node.lineage in self._rows.folds.collapsed
        if not hidden and not self.rows[line].dead:
            self.action_fold()
        elif (above := self._above(self.rows[line])) is not None and above.parent is not None:
            self._let_go()
            self.go_to(above)

    def action_open(self) -> None:
        """Show what is below, or go there."""
        line = self.cursor_line
        if line is None:
            return
        row = self.rows[line]
        if row.dead or row.node.lineage in self._rows.folds.collapsed:
            self.action_fold()
        elif row.node.children:
            self.action_move(1)

    # The mouse

    def on_click(self, event: events.Click) -> None:
        line = int(event.y + self.scroll_offset.y)
        if line >= len(self.rows):
            return
        row = self.rows[line]
        again = row.key == self._cursor
        self._go(line)
        if row.dead or again:
            self.action_fold()

    def on_mouse_scroll_up(self) -> None:
        self._let_go()

    def on_mouse_scroll_down(self) -> None:
        self._let_go()

    # Drawing

    def on_resize(self, event: events.Resize) -> None:
        self._strips.clear()
        self._relocate()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._strips.clear()

    def _refresh_rows(self, change: Change) -> None:
        top, height = self.scroll_offset.y, self.size.height
        lines = [
            line - top
            for node in change.nodes
            if (line := self._rows.place((node.lineage, False))) is not None
            and top <= line < top + height
        ]
        if lines:
            self.refresh(*(Region(0, line, self.size.width, 1) for line in lines))

    @property
    def _slide(self) -> int:
        """Columns that the tree has moved aside, so that a deep cursor leaves room for words."""
        line = self.cursor_line
        deep = len(self.rows[line].guides) if line is not None else 0
        return max(0, deep - self.size.width // 3 + _SLIDE - 1) // _SLIDE * _SLIDE

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        line = y + self.scroll_offset.y
        if line >= len(self.rows):
            return Strip.blank(width, self.rich_style)
        row = self.rows[line]
        guides = row.guides
        if slide := self._slide:
            guides = f"…{guides[slide + 1 :]}"
        head, words = self._words(row, width)
        cursor = self.has_focus if row.key == self._cursor else None
        leads = not row.dead and row.node in self._rows.leading
        state = State.PRUNED if row.dead else row.node.state
        key = (guides, head, words, state, leads, cursor, self.raw, width)
        if (strip := self._strips.get(key)) is None:
            strip = self._draw(guides, head, words, state, leads, cursor)
            self._strips[key] = strip
        return strip

    def _words(self, row: Row, width: int) -> tuple[str, str]:
        """The signs of a row, and as much of its words as may be seen."""
        node = row.node
        if row.dead:
            best = max((d.score for d in row.dead if d.score is not None), default=None)
            return _GLYPHS.states[State.PRUNED], _GLYPHS.folded(len(row.dead), best)
        head = _GLYPHS.label(node, scored=self._rows.view.scored)
        if node is self.marked:
            head = f"{_MARK} {head}"
        hidden = node.children and node.lineage in self._rows.folds.collapsed
        below = f"[+{len(node.children)}] " if hidden else ""
        return head, below + node.text[: 2 * width]

    def _draw(
        self, guides: str, head: str, words: str, state: State, leads: bool, cursor: bool | None
    ) -> Strip:
        base = self.rich_style
        text = Text(no_wrap=True)
        text.append(guides, self._style("guides"))
        text.append(f"{head} ", self._style(state.name.lower()))
        dim = self._style("pruned") if state is State.PRUNED else Style()
        text.append(as_line(words, raw=self.raw), self._style("leads") if leads else dim)
        if cursor is not None:  # its own colours must stay readable
            text = Text(text.plain, no_wrap=True)
            base += self._style("cursor")
        strip = Strip(text.render(self.app.console, end=""))
        return strip.apply_style(base).adjust_cell_length(self.size.width, base)

    def _style(self, name: str) -> Style:
        return self.get_component_rich_style(f"step--{name}", partial=True)
