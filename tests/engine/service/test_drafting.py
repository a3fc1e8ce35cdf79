"""Runs in which a second model drafts."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from engine import seedling
from engine.errors import EngineError
from engine.models.stop import StopSignal
from engine.protocol import (
    AnyEvent,
    Drafting,
    DraftJudged,
    Memory,
    RunFinished,
    Search,
    SolveRequest,
    StepDrafted,
    StepFinished,
    Throughput,
    Warned,
)
from engine.service.run import Run, open_run
from engine.service.solver import Solver

PROBLEM = "Lily buys 2 bags of 5 flowers each. She gives 3 flowers to Leo. How many flowers?"
MIB = 2**20


def solved(drafting: Drafting | None = None, **settings: Any) -> list[AnyEvent]:
    settings = {"generator": "seedling-target", "seed": 3} | settings
    search = settings.pop("search", Search(policy="majority", n=4))
    request = SolveRequest(problem=PROBLEM, search=search, drafting=drafting, **settings)
    heard: list[AnyEvent] = []
    solver = Solver()
    try:
        for _ in solver.solve(Run("test", request, send=heard.append)):
            pass
    finally:
        solver.close()
    return heard


def of(heard: list[AnyEvent], kind: type[Any]) -> list[Any]:
    return [event for event in heard if isinstance(event, kind)]


def nodes(heard: list[AnyEvent]) -> dict[tuple[int, ...], str]:
    return {event.lineage: event.text for event in of(heard, StepFinished)}


def test_beam_search_over_drafts_under_a_budget() -> None:
    heard = solved(
        Drafting(draft="seedling"),
        verifier="seedling",
        search=Search(policy="beam", n=8, width=4),
        budget=400 * MIB,
    )
    (finished,) = of(heard, RunFinished)
    counts = finished.counters
    assert counts.completions == 8
    assert len(of(heard, DraftJudged)) >= counts.steps_drafted >= counts.steps_accepted > 0
    assert of(heard, StepDrafted)
    assert counts.helper_tokens >= counts.accepted_tokens > 0
    assert counts.verified_tokens > 0
    # Other tests' libraries are in this process too, and may well take more than the budget.
    assert {event.code for event in of(heard, Warned)} - {"memory"} == {"approximate"}
    memory = of(heard, Memory)[-1]
    assert memory.draft.weights > 0
    assert memory.budget == 400 * MIB


def test_accepted_drafts_are_the_text_of_their_nodes() -> None:
    heard = solved(Drafting(draft="seedling"))
    drafted = {event.lineage: event.text for event in of(heard, StepDrafted)}
    accepted = [event.lineage for event in of(heard, DraftJudged) if event.accepted]
    assert accepted
    written = nodes(heard)
    assert all(written[lineage] == drafted[lineage] for lineage in accepted)


@pytest.mark.parametrize("accept", ["semantic", "tokens"])
def test_the_same_seed_gives_the_same_run(accept: Any) -> None:
    first, second = (solved(Drafting(draft="seedling", accept=accept)) for _ in range(2))
    assert nodes(first) == nodes(second)


def test_runs_side_by_side_find_what_each_finds_alone() -> None:
    drafting = Drafting(draft="seedling")
    alone = [nodes(solved(drafting, seed=seed)) for seed in (3, 4)]
    solver = Solver()
    heard: list[list[AnyEvent]] = [[], []]
    runs = []
    for place, seed in enumerate((3, 4)):
        request = SolveRequest(
            problem=PROBLEM,
            generator="seedling-target",
            search=Search(policy="majority", n=4),
            drafting=drafting,
            seed=seed,
        )
        runs.append(solver.solve(Run(str(place), request, send=heard[place].append)))
    try:
        while runs:
            runs = [run for run in runs if next(run, "ended") != "ended"]
    finally:
        solver.close()
    assert [nodes(events) for events in heard] == alone


def test_a_run_that_goes_on_counts_what_it_cost_in_all(tmp_path: Path) -> None:
    request = SolveRequest(
        problem=PROBLEM,
        generator="seedling-target",
        search=Search(policy="majority", n=16),
        drafting=Drafting(draft="seedling"),
        log=str(tmp_path / "log"),
    )
    solver = Solver()
    parts: list[list[AnyEvent]] = []
    try:
        for stopped in (True, False):
            heard: list[AnyEvent] = []
            parts.append(heard)
            run = open_run(
                "test",
                replace(request, resume=not stopped),
                heard.append,
                tell_again=lambda event: None,
                stop=StopSignal(),
                beat=lambda: None,
            )
            run.start()
            for _ in solver.solve(run):
                if stopped and len(of(heard, DraftJudged)) > 8:
                    run.stop.set()
            run.close()
    finally:
        solver.close()
    first, whole = (of(part, RunFinished)[0].counters for part in parts)
    judged = [event for part in parts for event in of(part, DraftJudged)]
    drafted = sum(len(of(part, StepDrafted)) for part in parts)
    assert 0 < first.steps_drafted < whole.steps_drafted == drafted
    assert whole.steps_accepted == sum(event.accepted for event in judged)
    assert whole.seconds > first.seconds > 0
    written = sum(len(event.tokens) for part in parts for event in of(part, StepFinished))
    assert whole.generated_tokens >= written > first.generated_tokens > 0
    assert of(parts[1], Throughput)[-1].generated == whole.generated_tokens
    assert whole.nodes == len({lineage for part in parts for lineage in nodes(part)})


def test_speculative_decoding_is_not_approximate() -> None:
    heard = solved(Drafting(draft="seedling", accept="tokens"))
    assert not of(heard, Warned)
    assert of(heard, RunFinished)[0].counters.accepted_tokens > 0


def test_too_small_a_budget_is_refused_with_the_draft_model_counted() -> None:
    alone = 120 * MIB
    assert of(solved(budget=alone), RunFinished)
    with pytest.raises(EngineError, match="do not fit"):
        solved(Drafting(draft="seedling"), budget=100 * MIB)


def test_models_with_other_tokens_are_refused() -> None:
    with pytest.raises(EngineError, match="other tokens than the generator"):
        solved(Drafting(draft="smollm2-135m-instruct", accept="tokens"))


@pytest.mark.parametrize("probe", [None, "/no/such/folder"])
def test_models_with_other_tokens_are_refused_before_predictors_are_asked_for(
    probe: str | None,
) -> None:
    with pytest.raises(EngineError, match="other tokens than the generator"):
        solved(Drafting(draft="smollm2-135m-instruct", probe=probe))


def test_a_draft_model_that_is_the_generator_is_refused() -> None:
    with pytest.raises(EngineError, match="the generator itself"):
        solved(Drafting(draft="seedling-target"))


def test_predictors_are_needed_and_must_be_of_these_models(tmp_path: Path) -> None:
    copy = tmp_path / "copy.gguf"
    copy.write_bytes(seedling.target_path().read_bytes())
    with pytest.raises(EngineError, match="only with predictors"):
        solved(Drafting(draft="seedling"), generator=str(copy))
    probe = str(seedling.probe_path())
    assert of(solved(Drafting(draft="seedling", probe=probe), generator=str(copy)), RunFinished)
    with copy.open("ab") as file:
        file.write(b"\0" * 32)
    with pytest.raises(EngineError, match="not on the file of"):
        solved(Drafting(draft="seedling", probe=probe), generator=str(copy))
    broken = tmp_path / "probe"
    shutil.copytree(probe, broken)
    whole = (broken / "target.safetensors").read_bytes()
    (broken / "target.safetensors").write_bytes(whole[:-100])
    with pytest.raises(EngineError):
        solved(Drafting(draft="seedling", probe=str(broken)))
