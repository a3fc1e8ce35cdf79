"""Converted verifiers in the worker process: they score solutions and guide searches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine.client import LocalEngine
from engine.protocol import (
    Answered,
    RunFailed,
    RunFinished,
    ScoreRequest,
    Search,
    SolveRequest,
    StepScored,
    Trouble,
)
from engine.verify.heads import head_beside
from tests.engine.convert.converting import Bodies
from tests.engine.convert.test_parity import PROBLEM, STEPS, TOLERANCE
from tests.engine.verify.on_llama import verifier as opened

if TYPE_CHECKING:
    from tests.engine.checkpoints import Family

pytestmark = pytest.mark.asyncio
Checkpoints = Callable[["Family"], Path]


async def test_a_verifier_with_a_head_scores_and_guides_in_one_worker(
    body: Bodies, checkpoint: Checkpoints
) -> None:
    from tests.engine.checkpoints import whole_path_scores

    family = "qwen2.5-math-prm"
    verifier = str(body(family))
    async with LocalEngine() as engine:
        request = ScoreRequest(problem=PROBLEM, steps=STEPS, verifier=verifier)
        scored = [e async for e in engine.score(request) if isinstance(e, StepScored)]
        search = Search(policy="beam", n=4, width=2, max_steps=3)
        solve = SolveRequest(problem=PROBLEM, verifier=verifier, search=search)
        events = [event async for event in engine.solve(solve)]
        again = [e async for e in engine.score(request) if isinstance(e, StepScored)]
    expected = whole_path_scores(family, checkpoint(family), PROBLEM, STEPS)
    assert scored[0].scores == pytest.approx(expected, abs=TOLERANCE)
    assert again[0].scores == scored[0].scores
    assert isinstance(events[-1], RunFinished)
    assert any(isinstance(event, Answered) for event in events)
    assert any(isinstance(event, StepScored) for event in events)


async def test_a_solution_alone_is_scored_with_attention_in_32_bits(body: Bodies) -> None:
    path = body("trl")
    async with LocalEngine() as engine:
        request = ScoreRequest(problem=PROBLEM, steps=STEPS, verifier=str(path))
        (scored,) = [e async for e in engine.score(request) if isinstance(e, StepScored)]
    found: list[tuple[float, ...]] = []
    for precise in (True, False):
        with opened(path, PROBLEM, precise=precise) as prm:
            (judged,) = prm.score([(prm.root, STEPS)])
            found.append(judged.scores_since(prm.root))
    assert scored.scores == pytest.approx(found[0], abs=1e-6)
    assert scored.scores != pytest.approx(found[1], abs=1e-5)


async def test_a_body_without_its_head_is_refused_before_it_is_loaded(
    body: Bodies, tmp_path: Path
) -> None:
    alone = tmp_path / "alone.gguf"
    alone.symlink_to(body("trl"))
    async with LocalEngine() as engine:
        (failed,) = [
            event
            async for event in engine.score(
                ScoreRequest(problem=PROBLEM, steps=STEPS, verifier=str(alone))
            )
        ]
    assert isinstance(failed, RunFailed)
    assert failed.trouble is Trouble.MODEL
    assert f"there is no {head_beside(alone).name} beside it" in failed.message
