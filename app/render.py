"""The ways to show a run. Each is told of every event after the view has taken it in."""

from __future__ import annotations

import sys
from typing import Protocol

from app import output
from app.glyphs import Glyphs, glyphs_for
from app.narration import ending, notice, phase_line, round_line
from app.run_view import RunView
from engine.protocol import (
    Answered,
    AnyEvent,
    BeamsSelected,
    NodesPruned,
    Phase,
    Throughput,
    encode,
)


class Renderer(Protocol):
    """Shows a run while it goes on."""

    def start(self) -> None: ...

    def show(self, event: AnyEvent) -> None: ...

    def tick(self) -> None:
        """Called about ten times a second."""
        ...

    def say(self, line: str) -> None:
        """Tell something that is not of the run."""
        ...

    def close(self) -> None:
        """Give the terminal back; also called when the run broke off."""
        ...


class Quiet:
    """Shows nothing."""

    def start(self) -> None:
        pass

    def show(self, event: AnyEvent) -> None:
        pass

    def tick(self) -> None:
        pass

    def say(self, line: str) -> None:
        output.narrate(line)

    def close(self) -> None:
        pass


class JsonLines(Quiet):
    """Writes the events as they are."""

    def show(self, event: AnyEvent) -> None:
        output.data(encode(event))


class Plain(Quiet):
    """Tells of phases, rounds and the end, one line each, without any control sequence."""

    def __init__(self, view: RunView) -> None:
        self._view = view
        self._glyphs: Glyphs = glyphs_for(sys.stderr.encoding)
        self._phase = ""
        self._decided: set[int] = set()

    def show(self, event: AnyEvent) -> None:
        if isinstance(event, BeamsSelected | NodesPruned):
            self._decided.add(event.round)
        elif isinstance(event, Phase) or self._view.ended:
            self._tell_rounds(self._decided)
        elif isinstance(event, Throughput | Answered):
            # A round may be decided group by group; it is told once, when it is over.
            self._tell_rounds({number for number in self._decided if self._view.is_over(number)})
        if isinstance(event, Phase) and (line := phase_line(event, self._glyphs)) != self._phase:
            self._phase = line
            self.say(line)
        elif (line := notice(event, self._glyphs)) is not None:
            self.say(line)
        if self._view.ended:
            for line in ending(self._view, self._glyphs):
                self.say(line)

    def _tell_rounds(self, numbers: set[int]) -> None:
        for number in sorted(numbers):
            self.say(round_line(number, self._view.rounds[number]))
        self._decided -= numbers
