"""The reasoning tree of a run, live."""

from __future__ import annotations

from dataclasses import dataclass

from rich.style import Style
from rich.text import Text
from textual import events
from textual.reactive import var
from textual.widgets import Tree
from textual.widgets.tree import TreeNode

from app.glyphs import glyphs_for
from app.run_view import Lineage, Node, RunView, State
from app.tui.feed import Change
from app.tui.messages import FollowChanged
from app.tui.shown import as_line
from app.tui.turn import Folds

_GLYPHS = glyphs_for("utf-8")
_LABEL_WIDTH = 24
"""What every label counts as; the true widths of all would have to be measured at each change."""
_MOVES = frozenset({"up", "down", "pageup", "pagedown", "home", "end"})


@dataclass(frozen=True, slots=True)
class Fold:
    """The row that stands for the pruned children of a node."""

    parent: Node

    def dead(self) -> list[Node]:
        return [child for child in self.parent.children if child.state is State.PRUNED]


Row = Node | Fold


class ReasoningTree(Tree[Row]):
    """One row a step, the pruned ones of each parent folded into one.

    The rows are made to match the view after each change; what the user did to them is kept in
    `Folds`, by lineage. Labels are made when they are drawn, so only visible ones cost.
    """

    COMPONENT_CLASSES = {f"step--{state.name.lower()}" for state in State} | {"step--leads"}

    follow: var[bool] = var(True)

    def __init__(self, id: str) -> None:
        super().__init__("", id=id)
        self.show_root = False
        self.guide_depth = 2
        self.auto_expand = False
        self.raw = False
        self._view = RunView()
        self._folds = Folds()
        self._rows: dict[Lineage, TreeNode[Row]] = {}
        self._leading: set[Node] = set()
        self._width = 80

    # What the screen calls

    def open(self, view: RunView, folds: Folds) -> None:
        """Show a run from here on."""
        self._view, self._folds = view, folds
        self.clear()
        self.root.expand()
        self._rows = {(): self.root}
        self._leading = set(view.leader.path()) if view.leader else set()
        self._fill(view.root)
        self._ride()

    def sync(self, change: Change) -> None:
        """Bring the rows up to date with the view."""
        if change.everything:
            self.open(self._view, self._folds)
            return
        leader = self._view.leader
        self._leading = set(leader.path()) if leader else set()
        parents = {node.parent for node in change.nodes if node.parent is not None}
        moved = False
        for parent in sorted(parents, key=lambda node: len(node.lineage)):
            moved |= self._match(parent)
        if moved:
            self._keep_cursor()
        else:
            for node in change.nodes:
                if (row := self._rows.get(node.lineage)) is not None:
                    row.refresh()
        self._ride()

    def go_to(self, node: Node) -> None:
        """Put the cursor on a node, unfolding whatever hides it."""
        for step in node.path():
            assert step.parent is not None
            if step.state is State.PRUNED and self._folds.hides_pruned(step.parent):
                self._folds.unfolded.add(step.parent.lineage)
                self._match(step.parent)
            above = self._rows.get(step.parent.lineage)
            if above is not None and not above.is_expanded:
                above.expand()
        self._cursor_to(node)

    def refold(self) -> None:
        """Fold or unfold after a change of `Folds.all_pruned`."""
        here = self.node
        self.open(self._view, self._folds)
        if here is not None:
            self._cursor_to(here)

    @property
    def node(self) -> Node | None:
        """The node under the cursor."""
        data = self.cursor_node.data if self.cursor_node is not None else None
        return data.parent if isinstance(data, Fold) else data

    # Rows

    def _wanted(self, parent: Node) -> list[Row]:
        children = parent.in_order
        if not self._folds.hides_pruned(parent):
            return list(children)
        rows: list[Row] = [child for child in children if child.state is not State.PRUNED]
        if len(rows) < len(children):
            rows.append(Fold(parent))
        return rows

    def _match(self, parent: Node) -> bool:
        """Give a node the rows it should have; tells whether any came or went."""
        home = self._rows.get(parent.lineage)
        if home is None:
            return False
        wanted = self._wanted(parent)
        if [row.data for row in home.children] == wanted:
            return False
        keep = set(wanted)
        for row in list(home.children):
            if row.data not in keep:
                self._drop(row)
        for place, data in enumerate(wanted):
            if place < len(home.children) and home.children[place].data == data:
                continue
            before = place if place < len(home.children) else None
            self._add(home, data, before)
            if isinstance(data, Node):
                self._fill(data)
        return True

    def _fill(self, top: Node) -> None:
        """Make the rows of all that is below a node that has none yet."""
        waiting = [top]
        while waiting:
            parent = waiting.pop()
            home = self._rows[parent.lineage]
            for data in self._wanted(parent):
                self._add(home, data, None)
                if isinstance(data, Node):
                    waiting.append(data)

    def _add(self, home: TreeNode[Row], data: Row, before: int | None) -> None:
        expanded = isinstance(data, Node) and data.lineage not in self._folds.collapsed
        row = home.add("", data, before=before, expand=expanded)
        if isinstance(data, Node):
            self._rows[data.lineage] = row

    def _drop(self, row: TreeNode[Row]) -> None:
        waiting = [row]
        while waiting:
            gone = waiting.pop()
            if isinstance(gone.data, Node):
                del self._rows[gone.data.lineage]
            waiting.extend(gone.children)
        row.remove()

    # The cursor

    def _ride(self) -> None:
        """In follow mode, go where the best path is."""
        if self.follow and self._view.leader is not None:
            self._cursor_to(self._view.leader)

    def _keep_cursor(self) -> None:
        """If the row under the cursor is gone, go to the one of the nearest node above."""
        here = self.node
        while here is not None and here.parent is not None and here.lineage not in self._rows:
            here = here.parent
        if here is not None and here is not self.node:
            self._cursor_to(here)

    def _cursor_to(self, node: Node) -> None:
        row = self._rows.get(node.lineage)
        # Asking for the last line makes the tree count its lines, without which a new row has none.
        if row is not None and row is not self.cursor_node and self.last_line >= 0:
            self.move_cursor(row)

    def on_key(self, event: events.Key) -> None:
        if event.key in _MOVES:
            self._let_go()

    def on_click(self) -> None:
        self._let_go()

    def on_mouse_scroll_up(self) -> None:
        self._let_go()

    def on_mouse_scroll_down(self) -> None:
        self._let_go()

    def _let_go(self) -> None:
        """The user moves, so the tree no longer does."""
        if self.follow:
            self.follow = False
            self.post_message(FollowChanged(False))

    def on_tree_node_selected(self, event: Tree.NodeSelected[Row]) -> None:
        """Enter, or a click: open a fold, or fold or unfold what is below a node."""
        event.stop()
        if isinstance(fold := event.node.data, Fold):
            dead = min(fold.dead(), key=lambda node: node.lineage)
            self._folds.unfolded.add(fold.parent.lineage)
            self._match(fold.parent)
            self._cursor_to(dead)
        else:
            event.node.toggle()

    def on_tree_node_collapsed(self, event: Tree.NodeCollapsed[Row]) -> None:
        if isinstance(event.node.data, Node):
            self._folds.collapsed.add(event.node.data.lineage)

    def on_tree_node_expanded(self, event: Tree.NodeExpanded[Row]) -> None:
        if isinstance(event.node.data, Node):
            self._folds.collapsed.discard(event.node.data.lineage)

    # Drawing

    def on_resize(self, event: events.Resize) -> None:
        self._width = event.size.width

    def get_label_width(self, node: TreeNode[Row]) -> int:
        return _LABEL_WIDTH

    def render_label(self, node: TreeNode[Row], base_style: Style, style: Style) -> Text:
        data = node.data
        if isinstance(data, Fold):
            dead = data.dead()
            best = max((d.score for d in dead if d.score is not None), default=None)
            sign = _GLYPHS.states[State.PRUNED]
            label = Text(f"{sign} {_GLYPHS.folded(len(dead), best)}", style=style)
            label.stylize(self._style("pruned"))
        elif data is not None:
            head = _GLYPHS.label(data, scored=self._view.scored)
            words = as_line(data.text[: 2 * self._width], raw=self.raw)
            label = Text(f"{head} {words}", style=style)
            if data.state is State.PRUNED:
                label.stylize(self._style("pruned"))
            elif data in self._leading:
                label.stylize(self._style("leads"))
            label.stylize(self._style(data.state.name.lower()), 0, len(head))
            if node.children and not node.is_expanded:
                label.append(f"  [+{len(node.children)}]", style=style)
        else:
            label = Text()
        if self.cursor_node is node:  # its own colours must stay readable
            label = Text(label.plain, style=style)
        label.no_wrap = True
        return label

    def _style(self, name: str) -> Style:
        return self.get_component_rich_style(f"step--{name}", partial=True)
