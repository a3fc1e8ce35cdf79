"""Scoring through the worker: as robust as solving."""

from __future__ import annotations

import asyncio

import pytest

from engine.client import LocalEngine
from engine.protocol import (
    AnyEvent,
    RunFailed,
    RunFinished,
    ScoreRequest,
    StepScored,
    Stop,
    Trouble,
)
from tests.engine.client.driving import engine as scripted

pytestmark = pytest.mark.asyncio


def request(problem: str = "a problem") -> ScoreRequest:
    return ScoreRequest(problem=problem, steps=("one", "two"))


async def scored(engine: LocalEngine, problem: str = "a problem") -> list[AnyEvent]:
    return [event async for event in engine.score(request(problem))]


async def test_a_solution_gets_a_score_a_step() -> None:
    async with scripted() as engine:
        step, finished = await scored(engine)
    assert isinstance(step, StepScored)
    assert step.scores == (0.5, 0.5)
    assert isinstance(finished, RunFinished)
    assert finished.stop is Stop.COMPLETE


async def test_solutions_asked_for_together_are_scored_one_after_another() -> None:
    async with scripted() as engine:
        found = await asyncio.gather(*(scored(engine) for _ in range(5)))
    assert all(isinstance(events[-1], RunFinished) for events in found)


async def test_a_lost_worker_is_replaced_and_the_solution_scored_again() -> None:
    async with scripted() as engine:
        events = await scored(engine, "once kill")
    assert isinstance(events[0], StepScored)
    assert isinstance(events[-1], RunFinished)


async def test_a_worker_lost_twice_ends_the_scoring_with_its_cause() -> None:
    async with scripted() as engine:
        (failed,) = await scored(engine, "abort")
    assert isinstance(failed, RunFailed)
    assert failed.trouble is Trouble.ENGINE
    assert "GGML_ASSERT" in failed.message


async def test_trouble_is_told_and_the_worker_goes_on() -> None:
    async with scripted() as engine:
        (failed,) = await scored(engine, "trouble")
        assert isinstance(failed, RunFailed)
        assert failed.message == "The model is damaged."
        assert isinstance((await scored(engine))[-1], RunFinished)


async def test_a_cancelled_scoring_ends_so() -> None:
    async with scripted(cancel_after=0.5) as engine:
        asyncio.get_running_loop().call_later(0.5, engine.cancel)
        (finished,) = await scored(engine, "hang")
    assert isinstance(finished, RunFinished)
    assert finished.stop is Stop.CANCELLED
