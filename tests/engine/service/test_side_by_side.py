"""Runs that go on at the same time in one worker, with the embedded pair."""

from __future__ import annotations

from collections.abc import Generator

import msgspec
import pytest

from engine.errors import EngineError
from engine.models.stop import StopSignal
from engine.protocol import (
    AnyEvent,
    DraftsDropped,
    RunFinished,
    Search,
    SolveRequest,
    StepFinished,
    Stop,
)
from engine.service.run import Run
from engine.service.solver import Solver

PROBLEMS = (
    "Tom has 12 apples. He buys 7 more apples. How many apples does Tom have?",
    "Mia has 30 coins. She loses 4 coins. Then she doubles them. How many coins does Mia have?",
    "Ben has 9 pens. He finds 8 more pens. How many pens does Ben have?",
)
Tree = dict[tuple[int, ...], str]


def begin(solver: Solver, place: int) -> tuple[Run, Generator[None], list[AnyEvent]]:
    events: list[AnyEvent] = []
    request = SolveRequest(
        problem=PROBLEMS[place],
        generator="seedling",
        verifier="seedling",
        search=Search(n=8 - 2 * place, width=2),
        seed=place,
        context=256,
    )
    run = Run(str(place), request, events.append, stop=StopSignal())
    run.start()
    return run, solver.solve(run), events


def tree(events: list[AnyEvent]) -> Tree:
    return {e.lineage: e.text for e in events if isinstance(e, StepFinished)}


def stop_of(events: list[AnyEvent]) -> Stop:
    assert isinstance(events[-1], RunFinished)
    return events[-1].stop


def kept(events: list[AnyEvent]) -> Tree:
    """Nodes of the tree; drafts that came to nothing are not part of it."""
    dropped = {at for e in events if isinstance(e, DraftsDropped) for at in e.lineages}
    return {lineage: text for lineage, text in tree(events).items() if lineage not in dropped}


def test_each_run_finds_what_it_finds_alone_and_a_cancelled_one_leaves_the_rest_alone() -> None:
    solver = Solver()
    try:
        alone: list[Tree] = []
        for place in range(3):
            _, work, events = begin(solver, place)
            for _ in work:
                pass
            alone.append(kept(events))
        runs = [begin(solver, place) for place in range(3)]
        going = list(runs)
        passes = 0
        while going:
            passes += 1
            if passes == 8:
                runs[1][0].stop.set()
            going = [each for each in going if next(each[1], going) is not going]
        assert stop_of(runs[1][2]) is Stop.CANCELLED
        for place in (0, 2):
            assert stop_of(runs[place][2]) is Stop.COMPLETE
            assert kept(runs[place][2]) == alone[place]
    finally:
        solver.close()


def test_runs_side_by_side_share_passes() -> None:
    solver = Solver()
    try:
        first, second = (begin(solver, place) for place in (0, 2))
        next(first[1])
        next(second[1])
        progress = [len(first[2]), len(second[2])]
        for _ in range(30):
            next(first[1], None)
            next(second[1], None)
        assert len(first[2]) > progress[0]
        assert len(second[2]) > progress[1]
        first[1].close()
        second[1].close()
    finally:
        solver.close()


def test_a_shared_pass_shows_that_each_of_its_runs_gets_on() -> None:
    solver = Solver()
    try:
        runs = [begin(solver, place) for place in (0, 2)]
        beats = [0, 0]
        for place, (run, _, _) in enumerate(runs):
            run.stop.beat = lambda place=place: beats.__setitem__(place, beats[place] + 1)
        for _ in range(10):
            for _, work, _ in runs:
                next(work)
        assert min(beats) >= 10
        for _, work, _ in runs:
            work.close()
    finally:
        solver.close()


def test_a_run_that_asks_for_other_models_is_not_overtaken_by_runs_that_share_those_in_use() -> (
    None
):
    solver = Solver()
    try:
        first = begin(solver, 1)
        next(first[1])
        other = begin(solver, 0)  # more paths than the first has room for
        next(other[1])
        sharing = begin(solver, 2)
        next(sharing[1])
        for _ in first[1]:
            next(other[1])
            next(sharing[1])
        assert len(sharing[2]) == 1  # it has only begun
        next(other[1])
        assert len(other[2]) > 1
        for run in (other, sharing):
            run[1].close()
    finally:
        solver.close()


def test_a_run_that_fails_before_its_search_keeps_nobody_waiting() -> None:
    solver = Solver()
    try:
        run, _, _ = begin(solver, 2)
        too_long = msgspec.structs.replace(run.request, problem=PROBLEMS[0] * 40)
        with pytest.raises(EngineError, match="no room for a solution"):
            for _ in solver.solve(Run("long", too_long, lambda _: None, stop=StopSignal())):
                pass
        _, work, events = begin(solver, 0)  # more paths than the models were opened for
        for passes, _ in enumerate(work):
            assert passes < 1000
        assert stop_of(events) is Stop.COMPLETE
    finally:
        solver.close()
