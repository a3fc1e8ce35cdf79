"""A finished run, seen at any of its moments."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path

from app.logs import events_in
from app.run_view import RunView
from app.tui.feed import Change, Feed
from engine.protocol import AnyEvent, BeamsSelected


def read_log(log: str) -> list[AnyEvent]:
    """All events of a log.

    Raises:
        CommandError: it cannot be read.
    """
    return list(events_in(Path(log)))


class Replay:
    """Runs over the events of a log in either direction.

    Attributes:
        taken: how many events the view holds.
    """

    def __init__(self, events: Sequence[AnyEvent]) -> None:
        self._events = events
        self._at = _rising(events)
        self._rounds = [i + 1 for i, event in enumerate(events) if isinstance(event, BeamsSelected)]
        self._feed = Feed()
        self.taken = 0
        self._clock = 0.0
        """Where playing goes on; between two events it is later than `at`."""

    @property
    def feed(self) -> Feed:
        return self._feed

    @property
    def view(self) -> RunView:
        return self._feed.view

    @property
    def at(self) -> float:
        """Seconds of the run at this moment."""
        return self._at[self.taken - 1] if self.taken else 0.0

    @property
    def length(self) -> float:
        return self._at[-1] if self._at else 0.0

    @property
    def ended(self) -> bool:
        return self.taken == len(self._events)

    def seek(self, seconds: float) -> Change:
        """Go to that second of the run."""
        return self._go(bisect_right(self._at, seconds))

    def end(self) -> Change:
        return self._go(len(self._events))

    def play(self, seconds: float) -> Change:
        """Go on by so much time."""
        self._clock += seconds
        return self._go(bisect_right(self._at, self._clock), playing=True)

    def round(self, number: int) -> Change:
        """Go to where the last decision of a round was made."""
        places = [i + 1 for i, e in enumerate(self._events) if _decides(e, number)]
        return self._go(places[-1] if places else self.taken)

    def next_round(self) -> Change:
        """Go on to the next decision."""
        later = (place for place in self._rounds if place > self.taken)
        return self._go(next(later, len(self._events)))

    def previous_round(self) -> Change:
        """Go back to the decision before."""
        earlier = [place for place in self._rounds if place < self.taken]
        return self._go(earlier[-1] if earlier else 0)

    def _go(self, place: int, *, playing: bool = False) -> Change:
        back = place < self.taken
        if back:  # a view cannot forget, so it is built again
            self._feed, self.taken = Feed(), 0
        change = self._feed.take(self._events[self.taken : place])
        self.taken = place
        if not playing:
            self._clock = self.at
        change.everything |= back
        return change


def _decides(event: AnyEvent, number: int) -> bool:
    return isinstance(event, BeamsSelected) and event.round == number


def _rising(events: Sequence[AnyEvent]) -> list[float]:
    """The times of the events; a resumed run's clock may begin anew, time here does not."""
    times: list[float] = []
    shift = latest = 0.0
    for event in events:
        if event.at + shift < latest:
            shift = latest - event.at
        latest = event.at + shift
        times.append(latest)
    return times
