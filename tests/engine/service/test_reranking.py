"""A model that judges in words ranks what a search has completed."""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from engine.errors import EngineError
from engine.models.stop import StopSignal
from engine.protocol import (
    Answered,
    AnyEvent,
    PathJudged,
    Phase,
    RunFinished,
    Search,
    SolveRequest,
    Stop,
    Warned,
    decode_event,
    encode,
)
from engine.service.run import Run
from engine.service.solver import Solver
from tests.engine.checkpoints import Family
from tests.engine.convert.converting import converted

CRITIC = "smollm2-135m-instruct"
REQUEST = SolveRequest(
    problem="Tom has 12 apples. He buys 7 more apples. How many apples does Tom have?",
    rerank=CRITIC,
    rerank_tokens=4,
    search=Search(policy="majority", n=3),
    context=200,
)


def solved(
    request: SolveRequest, hear: Callable[[AnyEvent, StopSignal], None] = lambda event, stop: None
) -> list[AnyEvent]:
    events: list[AnyEvent] = []
    stop = StopSignal()

    def send(event: AnyEvent) -> None:
        events.append(decode_event(encode(event)))  # as it comes to the client
        hear(event, stop)

    run = Run("run", request, send, stop=stop)
    run.start()
    solver = Solver()
    for _ in solver.solve(run):
        pass
    solver.close()
    return events


def test_completed_paths_are_judged_and_the_answer_chosen_by_that() -> None:
    events = solved(REQUEST)
    judged = {e.lineage: e.scores for e in events if isinstance(e, PathJudged)}
    assert len(judged) == 3
    assert all(len(scores) == 1 and 0 < scores[0] < 1 for scores in judged.values())
    first, *_, last = [event for event in events if isinstance(event, Answered)]
    assert first.score is None
    assert last.score in [scores[0] for scores in judged.values()]
    best = max(last.votes, key=lambda vote: vote.weight)
    assert last.answer == best.answer
    (*_, phase) = [event for event in events if isinstance(event, Phase)]
    assert (phase.name, phase.done) == ("judging", 1.0)
    assert isinstance(events[-1], RunFinished)
    assert events[-1].stop is Stop.COMPLETE


@pytest.mark.parametrize("ending", ["", ".gguf"], ids=["folder", "file"])
def test_a_model_named_genprm_judges_each_step_in_its_own_way_and_is_called_as_it_was_named(
    ending: str, checkpoint: Callable[[Family], Path], tmp_path: Path
) -> None:
    named = tmp_path / f"GenPRM-1.5B{ending}"
    if ending:
        converted(checkpoint("generator"), named)  # which calls itself by the folder's name
    else:
        named.symlink_to(checkpoint("generator"))
    request = SolveRequest(
        problem=REQUEST.problem,
        rerank=str(named),
        rerank_tokens=4,
        search=Search(policy="majority", n=2),
        context=200,
    )
    events = solved(request)
    assert not [event for event in events if isinstance(event, Warned)]
    steps = [len(event.text.split("\n\n")) for event in events if isinstance(event, Answered)]
    judged = [len(event.scores) for event in events if isinstance(event, PathJudged)]
    assert len(judged) == 2
    assert steps[-1] in judged
    called = {event.model for event in events if isinstance(event, Phase)}
    assert named.name in called
    assert "generator" not in called
    assert isinstance(events[-1], RunFinished)
    assert events[-1].stop is Stop.COMPLETE


def test_a_cancelled_ranking_keeps_the_answer() -> None:
    def hear(event: AnyEvent, stop: StopSignal) -> None:
        if isinstance(event, Phase) and event.name == "judging":
            stop.set()

    events = solved(REQUEST, hear)
    answers = [event for event in events if isinstance(event, Answered)]
    assert answers
    assert answers[-1].score is None
    assert isinstance(events[-1], RunFinished)
    assert events[-1].stop is Stop.CANCELLED


def test_a_ranking_model_that_cannot_judge_leaves_the_answer_and_says_so() -> None:
    events = solved(SolveRequest(problem=REQUEST.problem, rerank="seedling", search=REQUEST.search))
    (warning,) = [event for event in events if isinstance(event, Warned)]
    assert warning.code == "rerank"
    assert "not as one" in warning.message
    assert isinstance(events[-1], RunFinished)
    assert events[-1].stop is Stop.COMPLETE


def test_an_unknown_ranking_model_is_told_before_the_search() -> None:
    with pytest.raises(EngineError, match="no generator 'nobody'"):
        solved(SolveRequest(problem=REQUEST.problem, rerank="nobody", search=REQUEST.search))


def test_a_run_on_the_ranking_model_waits_until_the_ranking_is_done() -> None:
    order: list[str] = []

    def begin(name: str, request: SolveRequest) -> tuple[list[AnyEvent], Generator[None]]:
        events: list[AnyEvent] = []

        def send(event: AnyEvent) -> None:
            events.append(event)
            order.append(f"{name} {event.__struct_config__.tag}")

        run = Run(name, request, send)
        run.start()
        return events, solver.solve(run)

    solver = Solver()
    ranked, ranking = begin("ranked", REQUEST)
    while not any(isinstance(event, Phase) and event.name == "judging" for event in ranked):
        next(ranking)
    beside = SolveRequest(
        problem="Say yes.", generator=CRITIC, search=Search(policy="majority", n=1), context=100
    )
    other, work = begin("other", beside)
    going = [ranking, work]
    while going:
        going = [each for each in going if next(each, going) is not going]
    solver.close()
    for events in (ranked, other):
        assert isinstance(events[-1], RunFinished)
        assert events[-1].stop is Stop.COMPLETE
    last_judged = len(order) - 1 - order[::-1].index("ranked path_judged")
    assert order.index("other node_opened") > last_judged
