"""Models named by a checkpoint's folder, run by the worker's own solver."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from engine import catalogue, seedling
from engine.errors import EngineError
from engine.models.stop import StopSignal
from engine.protocol import (
    Answered,
    AnyEvent,
    Phase,
    RunFinished,
    ScoreRequest,
    Search,
    SolveRequest,
    StepScored,
    Stop,
)
from engine.seedling.checkpoint import write_checkpoint
from engine.service.run import Run
from engine.service.scoring import Scoring
from engine.service.solver import Solver
from tests.engine.checkpoints import Family

PROBLEM = "Tom has 12 apples. He buys 7 more apples. How many apples does Tom have?"


@pytest.fixture
def pair(tmp_path: Path) -> tuple[str, str]:
    """The embedded pair as checkpoints."""
    generator = write_checkpoint(seedling.generator_path(), tmp_path / "generator")
    verifier = write_checkpoint(seedling.verifier_path(), tmp_path / "verifier")
    return str(generator), str(verifier)


def solved(request: SolveRequest) -> list[AnyEvent]:
    events: list[AnyEvent] = []
    run = Run("run", request, events.append)
    run.start()
    solver = Solver()
    for _ in solver.solve(run):
        pass
    solver.close()
    return events


def request(generator: str, verifier: str) -> SolveRequest:
    search = Search(n=4, width=2)
    return SolveRequest(
        problem=PROBLEM,
        generator=generator,
        verifier=verifier,
        prm_format="seedling",
        search=search,
        context=200,
    )


def answer(events: list[AnyEvent]) -> str:
    return [event.answer for event in events if isinstance(event, Answered)][-1]


def test_a_search_with_both_models_from_folders_finds_what_it_finds_with_their_files(
    pair: tuple[str, str],
) -> None:
    events = solved(request(*pair))
    loading = {e.model for e in events if isinstance(e, Phase) and e.name == "loading"}
    assert loading == {"generator", "verifier"}
    assert any(isinstance(event, StepScored) for event in events)
    assert answer(events) == answer(solved(request("seedling", "seedling")))
    assert isinstance(events[-1], RunFinished)
    assert events[-1].stop is Stop.COMPLETE


def test_a_checkpoint_with_a_head_says_its_format_itself(
    checkpoint: Callable[[Family], Path],
) -> None:
    path, format = catalogue.verifier_file(str(checkpoint("skywork")), None)
    assert path.is_dir()
    assert format.name == "skywork"


def test_a_verifier_with_a_head_scores_from_its_folder(
    pair: tuple[str, str], checkpoint: Callable[[Family], Path]
) -> None:
    events = solved(
        SolveRequest(
            problem=PROBLEM, generator=pair[0], verifier=str(checkpoint("skywork")),
            search=Search(n=2, width=2, max_steps=2), context=200,
        )
    )  # fmt: skip
    assert any(isinstance(event, StepScored) for event in events)


def test_a_solution_is_scored_from_a_folder_as_from_its_file(pair: tuple[str, str]) -> None:
    solver = Solver()
    found: list[tuple[float, ...]] = []
    for verifier in (pair[1], str(seedling.verifier_path())):
        events: list[AnyEvent] = []
        asked = ScoreRequest(
            problem=PROBLEM,
            steps=("Tom has 12+7=19 apples.", "The answer is \\boxed{19}."),
            verifier=verifier,
            prm_format="seedling",
        )
        for _ in solver.score(Scoring(asked, events.append, StopSignal(), lambda: None)):
            pass
        assert isinstance(events[-1], RunFinished)
        found += [event.scores for event in events if isinstance(event, StepScored)]
    solver.close()
    assert len(found) == 2
    assert found[0] == pytest.approx(found[1], abs=5e-3)


def test_without_torch_a_folder_is_refused_with_what_to_install(
    pair: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "engine.models.hf.weights", None)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(EngineError, match="is not installed") as refusal:
        solved(SolveRequest(problem=PROBLEM, generator=pair[0], search=Search(policy="majority")))
    assert "pip install 'sapwood[torch]'" in refusal.value.advice


def test_a_folder_that_is_no_checkpoint_is_told(tmp_path: Path) -> None:
    requests = (
        SolveRequest(problem=PROBLEM, generator=str(tmp_path), search=Search(policy="majority")),
        SolveRequest(problem=PROBLEM, verifier=str(tmp_path)),
        SolveRequest(problem=PROBLEM, verifier=str(tmp_path), prm_format="seedling"),
    )
    for request in requests:
        with pytest.raises(EngineError, match=r"config\.json"):
            solved(request)
