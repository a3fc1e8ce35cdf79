"""A run recorded on real models is scheduled again on simulated ones, and is the same search."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import bench.simulate
from bench.scripts import recorded
from engine.models.stop import StopSignal
from engine.protocol import (
    AnyEvent,
    DraftsDropped,
    Search,
    SolveRequest,
    StepFinished,
)
from engine.runlog import read_run
from engine.service.run import open_run
from engine.service.solver import Solver

DEVICES = tomllib.loads(Path(bench.simulate.__file__).with_name("devices.toml").read_text("utf-8"))
Tree = dict[tuple[int, ...], tuple[int, str]]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("runs") / "run.jsonl")
    request = SolveRequest(
        problem="Mia has 30 coins. She loses 4 coins. Then she doubles them. How many has she?",
        verifier="seedling",
        search=Search(n=8),
        seed=5,
        context=256,
        log=path,
    )
    run = open_run("1", request, lambda event: None, stop=StopSignal(), beat=lambda: None)
    solver = Solver()
    try:
        run.start()
        for _ in solver.solve(run):
            pass
    finally:
        solver.close()
        run.close()
    return path


def tree(events: list[AnyEvent]) -> Tree:
    dropped = {at for e in events if isinstance(e, DraftsDropped) for at in e.lineages}
    return {
        e.lineage: (len(e.tokens), e.ending)
        for e in events
        if isinstance(e, StepFinished) and e.lineage not in dropped
    }


@pytest.mark.parametrize("mode", ["baseline", "plain", "exact"])
def test_a_replayed_run_comes_to_the_tree_that_was_recorded(log: str, mode: str) -> None:
    events = list(read_run(log))
    where = bench.simulate.machine(DEVICES, "rtx-4090", "1.5B+1.5B")
    assert where is not None
    again = bench.simulate.solve(where, recorded(log), mode, "unified")
    shapes = {at: (len(step.tokens), step.ending) for at, step in again.steps.items()}
    assert shapes == tree(events)
    assert again.seconds > 0
