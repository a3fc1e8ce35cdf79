"""The live tree on a terminal."""

from __future__ import annotations

from time import monotonic

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from app.glyphs import glyphs_for
from app.narration import ending, header, notice
from app.run_view import RunView, State
from app.tree_rows import Row, tree_rows
from engine.protocol import AnyEvent

_STYLES = {
    State.QUEUED: "dim",
    State.WRITING: "cyan",
    State.DRAFT: "dim cyan",
    State.FINISHED: "yellow",
    State.SCORED: "yellow",
    State.KEPT: "green",
    State.PRUNED: "dim red",
    State.COMPLETED: "bold green",
    State.ANSWER: "bold green",
}


class LiveTree:
    """Redraws the tree at most as often as it is ticked, and only if something has changed."""

    def __init__(self, view: RunView, console: Console, speed: float = 1.0) -> None:
        self._view = view
        self._console = console
        self._speed = speed
        self._glyphs = glyphs_for(console.encoding)
        self._live = Live(
            console=console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._heard = self._drawn = monotonic()
        self._stale = True

    def start(self) -> None:
        self._live.start()

    def show(self, event: AnyEvent) -> None:
        self._heard = monotonic()
        self._stale = True
        if (line := notice(event, self._glyphs)) is not None:
            self.say(line)

    def tick(self) -> None:
        # The clock in the header moves even when nothing else does.
        if self._stale or monotonic() - self._drawn >= 0.5:
            self._stale, self._drawn = False, monotonic()
            self._live.update(self._picture(), refresh=True)

    def say(self, line: str) -> None:
        self._console.print(Text(line))

    def close(self) -> None:
        self._live.update(Text(""))
        self._live.stop()
        for line in ending(self._view, self._glyphs) if self._view.ended else ():
            self.say(line)

    def _picture(self) -> Group:
        width, height = self._console.size
        seconds = self._view.at + (monotonic() - self._heard) * self._speed
        lines = [Text(header(self._view, self._glyphs, seconds), style="bold")]
        if self._view.note:
            lines.append(Text(self._glyphs.one_line(self._view.note), style="yellow"))
        rows, hidden = tree_rows(self._view, max(1, height - len(lines) - 2))
        top = min((row.depth for row in rows), default=0)
        lines += [self._row(row, top, width) for row in rows]
        if hidden:
            lines.append(Text(f"{self._glyphs.more} {hidden} more", style="dim"))
        for line in lines:
            line.truncate(width - 1)
        return Group(*lines)

    def _row(self, row: Row, top: int, width: int) -> Text:
        indent = " " * min(2 * (row.depth - top), width // 4)
        if row.node is None:
            glyph = self._glyphs.states[State.PRUNED]
            folded = self._glyphs.folded(row.folded, row.folded_best)
            return Text(f"{indent}{glyph} {folded}", style="dim")
        node = row.node
        # As much as can be seen; to flatten all of a long step ten times a second is too much.
        words = self._glyphs.one_line(node.text[: 2 * width])
        label = self._glyphs.label(node, scored=self._view.scored)
        line = Text(f"{indent}{label} {words}", style="bold" if row.leads else "")
        line.stylize(_STYLES[node.state], len(indent), len(indent) + 1)
        return line
