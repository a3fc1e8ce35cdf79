"""Joining text loses nothing and keeps the order that matters."""

from __future__ import annotations

from collections import defaultdict

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.protocol import (
    AnyEvent,
    BeamsSelected,
    Event,
    NodeOpened,
    SolveRequest,
    StepFinished,
    TextAppended,
)
from engine.service.run import Run

LINEAGES = st.sampled_from([(0,), (1,), (0, 0)])
EVENTS = st.one_of(
    st.builds(TextAppended, lineage=LINEAGES, text=st.sampled_from(["", "a", "bc", "ä "])),
    st.builds(NodeOpened, lineage=LINEAGES),
    st.builds(
        StepFinished,
        lineage=LINEAGES,
        text=st.just("whole"),
        tokens=st.just(()),
        ending=st.just("step"),
    ),
    st.builds(BeamsSelected, round=st.integers(0, 3), kept=st.just(((0,),))),
)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def emit_all(events: list[tuple[Event, float]]) -> list[AnyEvent]:
    sent: list[AnyEvent] = []
    clock = Clock()
    run = Run("r", SolveRequest(problem="p"), sent.append, clock=clock)
    for event, pause in events:
        clock.now += pause
        run.emit(event)
    run.emit(BeamsSelected(round=9, kept=()))
    return sent


def told_by_node(events: list[Event]) -> dict[tuple[int, ...], list[str]]:
    """For each node what happened to it, its text as one string between other events."""
    told: dict[tuple[int, ...], list[str]] = defaultdict(lambda: [""])
    for event in events:
        match event:
            case TextAppended():
                told[event.lineage][-1] += event.text
            case NodeOpened() | StepFinished():
                told[event.lineage] += [type(event).__name__, ""]
    return told


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(EVENTS, st.sampled_from([0.0, 0.01, 0.06])), max_size=30))
def test_each_node_is_told_the_same_story(events: list[tuple[Event, float]]) -> None:
    sent = emit_all(events)
    told = told_by_node([event for event, _ in events])
    assert told_by_node(list(sent)) == told


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(EVENTS, st.sampled_from([0.0, 0.01, 0.06])), max_size=30))
def test_events_are_numbered_without_gaps_and_times_never_fall(
    events: list[tuple[Event, float]],
) -> None:
    sent = emit_all(events)
    assert [event.seq for event in sent] == list(range(len(sent)))
    assert [event.at for event in sent] == sorted(event.at for event in sent)


def test_fast_text_comes_as_about_twenty_events_a_second() -> None:
    second = [(TextAppended(lineage=(0,), text="x"), 0.001)] * 1000
    texts = [event for event in emit_all(list(second)) if isinstance(event, TextAppended)]
    assert 18 <= len(texts) <= 22
    assert sum(len(event.text) for event in texts) == 1000


def test_a_decision_comes_after_all_text_written_before_it() -> None:
    sent = emit_all(
        [
            (TextAppended(lineage=(0,), text="a"), 0.0),
            (TextAppended(lineage=(0,), text="b"), 0.0),
            (TextAppended(lineage=(1,), text="c"), 0.0),
            (BeamsSelected(round=0, kept=((0,),)), 0.0),
        ]
    )
    kinds = [type(event) for event in sent]
    assert kinds[:4] == [TextAppended, TextAppended, TextAppended, BeamsSelected]
