"""Scripted runs: streams of events as the engine would give them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import TypeVar, cast

import msgspec

from app.run_view import RunView
from engine.protocol import (
    Answered,
    AnswerGroup,
    AnyEvent,
    BeamsSelected,
    Counters,
    Event,
    NodeOpened,
    NodesPruned,
    Phase,
    RunFailed,
    RunFinished,
    RunStarted,
    Search,
    SolveRequest,
    StepFinished,
    StepScored,
    Stop,
    TextAppended,
    Throughput,
    Trouble,
    Warned,
)

_E = TypeVar("_E", bound=Event)

REQUEST = SolveRequest(
    problem="Tom has 3 apples and finds 5. How many?",
    verifier="seedling",
    search=Search(policy="beam", n=4, width=2, max_steps=10),
)


def numbered(events: list[Event]) -> list[AnyEvent]:
    """The events with their places and times, a tenth of a second apart."""
    places = count()
    return [
        cast(AnyEvent, msgspec.structs.replace(event, seq=place, at=place / 10))
        for event, place in zip(events, places, strict=False)
    ]


def view_of(events: Sequence[AnyEvent]) -> RunView:
    """What people see after these events."""
    view = RunView()
    for event in events:
        view.update(event)
    return view


def node(lineage: tuple[int, ...], text: str, score: float | None = None) -> list[Event]:
    """Everything that happens to one node until it is scored."""
    events: list[Event] = [
        NodeOpened(lineage=lineage),
        TextAppended(lineage=lineage, text=text[:4]),
        TextAppended(lineage=lineage, text=text[4:]),
        StepFinished(lineage=lineage, text=text, tokens=tuple(range(len(text))), ending="step"),
    ]
    if score is not None:
        events.append(StepScored(lineage=lineage, scores=(score,)))
    return events


def beginning(request: SolveRequest = REQUEST) -> list[Event]:
    return [
        RunStarted(run="test", request=request),
        Phase(name="loading", model="Seedling", note="a demonstration model for simple stories"),
        Phase(name="searching"),
    ]


def first_round(text: str = "Tom has 3 apples.\n\n") -> list[Event]:
    return [
        *node((0,), text, 0.9),
        *node((1,), "Tom has 5 apples.\n\n", 0.4),
        *node((2,), "Tom has 2 apples.\n\n", 0.2),
        *node((3,), "Tom finds 5 apples.\n\n", 0.7),
        NodesPruned(round=0, lineages=((1,), (2,)), reason="ranked below 2 others"),
        BeamsSelected(round=0, kept=((0,), (3,))),
        Throughput(generated=64, verified=64, rate=100.0, beams=4),
    ]


def second_round(answer: str = "8") -> list[Event]:
    return [
        *node((0, 0), f"3 + 5 = 8, so \\boxed{{{answer}}}", 0.95),
        *node((0, 1), "3 + 5 = 9, so \\boxed{9}", 0.3),
        *node((3, 0), f"5 + 3 = 8, so \\boxed{{{answer}}}", 0.85),
        NodesPruned(round=1, lineages=((0, 1),), reason="ranked below 2 others"),
        BeamsSelected(round=1, kept=(), completed=((0, 0), (3, 0))),
    ]


def answered(
    answer: str = "8", correct: bool | None = None, lineage: tuple[int, ...] = (0, 0)
) -> Answered:
    return Answered(
        answer=answer,
        text="...",
        lineage=lineage,
        score=0.95,
        votes=(AnswerGroup(answer, 2, 1.8), AnswerGroup("9", 1, 0.3)),
        correct=correct,
    )


def finished(stop: Stop = Stop.COMPLETE) -> RunFinished:
    return RunFinished(
        stop=stop, counters=Counters(seconds=2.5, generated_tokens=120, verified_tokens=110)
    )


def whole_run(answer: str = "8", text: str = "Tom has 3 apples.\n\n") -> list[AnyEvent]:
    return numbered(
        [
            *beginning(),
            *first_round(text),
            *second_round(answer),
            answered(answer),
            finished(),
        ]
    )


def failing_run(trouble: Trouble) -> list[AnyEvent]:
    failed = RunFailed(
        trouble=trouble,
        message="It did not work.",
        advice="Do it otherwise.",
        forcible=trouble is Trouble.MEMORY,
    )
    return numbered([*beginning(), failed])


def run_with_gap_in_log() -> list[AnyEvent]:
    warned = Warned(code="log", message="The run log stopped: no space left.")
    return numbered([*beginning(), *first_round(), warned, *second_round(), answered(), finished()])
