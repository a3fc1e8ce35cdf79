"""What the engine is doing, on one line."""

from __future__ import annotations

from time import monotonic

from rich.text import Text
from textual.widget import Widget

from app.glyphs import BAR_CELLS, glyphs_for
from app.narration import answer_with_score, clock
from app.printable import one_line
from app.tui.turn import Standing, Turn
from engine.protocol import Memory

_GLYPHS = glyphs_for("utf-8")
_PHASES = {
    "loading": "loading",
    "prefill": "reading the problem",
    "searching": "searching",
    "checking": "checking the answer",
}
_ENDS = {
    Standing.QUEUED: "queued",
    Standing.STOPPED: "stopped",
    Standing.FAILED: "failed",
    Standing.DONE: "done",
}


class StatusLine(Widget):
    """Phase, models, speed, beams, time, memory and the best so far; the most telling first."""

    def __init__(self, models: str) -> None:
        super().__init__()
        self._models = models
        self._turn: Turn | None = None
        self._waiting = 0
        self._news: object = None
        """By what it is seen that the run has moved, which sets its clock."""
        self._heard = monotonic()

    def show(self, turn: Turn | None, waiting: int) -> None:
        """Tell of this turn, with so many questions waiting behind it."""
        news = (turn.id, turn.standing, turn.view.at) if turn else None
        if news != self._news:
            self._news, self._heard = news, monotonic()
        self._turn, self._waiting = turn, waiting
        self.refresh()

    def render(self) -> Text:
        line = Text(no_wrap=True, overflow="ellipsis")
        if self._turn is None:
            line.append("ready", style="bold")
            line.append(f" · {self._models}")
            return line
        parts = self._parts(self._turn)
        line.append(parts[0], style="bold")
        for part in parts[1:]:
            line.append(f" · {part}")
        return line

    def _parts(self, turn: Turn) -> list[str]:
        view = turn.view
        parts = [_doing(turn)]
        if view.answered is not None:
            parts.append(f"best {answer_with_score(view, _GLYPHS)}")
        elif view.leader is not None and view.leader.score is not None:
            parts.append(f"best {view.leader.score:.2f}")
        if self._waiting:
            parts.append(f"{self._waiting} queued")
        if view.depth and view.request is not None:
            parts.append(f"depth {view.depth}/{view.request.search.max_steps}")
        if view.throughput is not None and turn.active:
            parts += [f"{view.throughput.beams} beams", f"{view.throughput.rate:.0f} tok/s"]
        if turn.started:
            parts.append(clock(self._seconds(turn)))
        parts.append(self._models)
        if view.memory is not None:
            parts += _memory(view.memory)
        return parts

    def _seconds(self, turn: Turn) -> float:
        view = turn.view
        if view.finished is not None:
            return view.finished.counters.seconds or view.at
        return view.at + (monotonic() - self._heard if turn.active else 0.0)


def _doing(turn: Turn) -> str:
    if not turn.active or turn.standing is Standing.QUEUED:
        return _ENDS[turn.standing]
    phase = turn.view.phase
    if phase is None:
        return "starting the engine"
    model = one_line(phase.model) if phase.name in ("loading", "prefill") else ""
    share = f" {phase.done:.0%}" if phase.done is not None else ""
    return f"{_PHASES[phase.name]} {model}".rstrip() + share


def _memory(memory: Memory) -> list[str]:
    parts = [f"{memory.process / 2**20:,.0f} MiB"]
    caches = (
        ("gen", memory.generator_cells, memory.generator_capacity),
        ("ver", memory.verifier_cells, memory.verifier_capacity),
    )
    for name, used, capacity in caches:
        if capacity:
            parts.append(f"KV {name} {_bar(used / capacity)} {used / capacity:.0%}")
    return parts


def _bar(share: float) -> str:
    full = min(BAR_CELLS, round(share * BAR_CELLS))
    return _GLYPHS.full * full + _GLYPHS.empty * (BAR_CELLS - full)
