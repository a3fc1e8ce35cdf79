"""What the engine is doing, on one line."""

from __future__ import annotations

from time import monotonic

from rich.text import Text
from textual.widget import Widget

from app.glyphs import glyphs_for
from app.narration import PHASES, answer_with_score, clock
from app.printable import one_line
from app.tui.effort import Models, label_of
from app.tui.fitting import fitting
from app.tui.turn import Standing, Turn

_GLYPHS = glyphs_for("utf-8")
_DOT = " · "
_ENDS = {
    Standing.QUEUED: "queued",
    Standing.STOPPED: "stopped",
    Standing.FAILED: "failed",
    Standing.DONE: "done",
}


class StatusLine(Widget):
    """Phase, models, speed, beams, time and the best so far. Where not all of it fits, what
    matters least is left out whole."""

    def __init__(self, models: Models) -> None:
        super().__init__()
        self.models = models
        self.aside = ""
        """What goes on beside the questions."""
        self._turn: Turn | None = None
        self._waiting = 0
        self._news: object = None
        """By what it is seen that the run has moved, which sets its clock."""
        self._heard = monotonic()
        self._elapsed = 0.0
        """Seconds of the turn as they were told, which never become fewer."""
        self._said = self._rest()

    def show(self, turn: Turn | None, waiting: int) -> None:
        """Tell of this turn, with so many questions waiting behind it."""
        news = (turn.id, turn.standing, turn.view.at) if turn else None
        if news != self._news:
            self._news, self._heard = news, monotonic()
        if turn is not self._turn or turn is None or not turn.view.run:
            self._elapsed = 0.0
        self._turn, self._waiting = turn, waiting
        said = self._parts(turn) if turn is not None else self._rest()
        if said != self._said:
            self._said = said
            self.refresh()

    def render(self) -> Text:
        kept = fitting(self._said, self.size.width, gap=len(_DOT))
        line = Text(no_wrap=True, overflow="ellipsis")
        for place in kept:
            line.append(_DOT if place else "")
            line.append(self._said[place], style="bold" if place == 0 else "")
        return line

    def _rest(self) -> list[str]:
        return list(filter(None, ["ready", self.aside, self.models.label]))

    def _parts(self, turn: Turn) -> list[str]:
        """What there is to tell, the most telling first."""
        view = turn.view
        parts = [_doing(turn)]
        if view.answered is not None:
            parts.append(f"best {answer_with_score(view, _GLYPHS)}")
        elif view.leader is not None and view.leader.score is not None:
            parts.append(f"best {view.leader.score:.2f}")
        if self._waiting:
            parts.append(f"{self._waiting} queued")
        if view.run:  # the engine itself takes a moment to start, which is not the run's
            parts.append(clock(self._seconds(turn)) if not turn.active else self._whole(turn))
        if view.throughput is not None and turn.active:
            parts += [f"{view.throughput.rate:.0f} tok/s", f"{view.throughput.beams} beams"]
        if view.depth and view.request is not None:
            parts.append(f"depth {view.depth}/{view.request.search.max_steps}")
        if (goodput := turn.feed.goodput) is not None:
            parts.append(f"goodput {goodput:.1f} tok/s")
        parts += filter(None, [self.aside, turn.models])
        if label_of(self.models.request("", turn.effort)) != label_of(turn.request):
            parts.append(f"next {self.models.label}")
        if not turn.active and (tokens := _tokens(turn)):
            parts.append(f"{tokens:,} tokens")
        return parts

    def _whole(self, turn: Turn) -> str:
        """Time that passes, in seconds, since every other sign would be drawn anew."""
        return clock(int(self._seconds(turn))).replace(".0 s", " s")

    def _seconds(self, turn: Turn) -> float:
        since = monotonic() - self._heard if turn.active else 0.0
        self._elapsed = max(self._elapsed, turn.view.seconds + since)
        return self._elapsed


def _tokens(turn: Turn) -> int:
    """Tokens that were written; of a run that was cut off, those of its steps."""
    finished = turn.view.finished
    told = finished.counters.generated_tokens if finished is not None else 0
    return told or sum(node.tokens for node in turn.view.nodes.values())


def _doing(turn: Turn) -> str:
    if not turn.active or turn.standing is Standing.QUEUED:
        return _ENDS[turn.standing]
    phase = turn.view.phase
    if phase is None:
        return "starting the engine"
    model = one_line(phase.model) if phase.name in ("loading", "prefill") else ""
    share = f" {phase.done:.0%}" if phase.done is not None else ""
    return f"{PHASES[phase.name]} {model}".rstrip() + share
