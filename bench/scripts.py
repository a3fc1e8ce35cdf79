"""What a simulated search is about: generated text, or a recorded run's text and scores."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import correlation, fmean, pstdev
from typing import Any

from engine.models.base import Vocabulary
from engine.models.sampling import Sampler
from engine.models.simulated import Process
from engine.models.simulated_recording import (
    RecordedJudge,
    RecordedVocabulary,
    RecordedWriter,
    Step,
)
from engine.models.simulated_text import BEGIN, Judge, SimulatedVocabulary, Writer
from engine.protocol import RunStarted, StepFinished, StepScored
from engine.protocol.request import Search
from engine.runlog import read_run
from engine.scheduling.settings import Limits
from engine.search.policy import Lineage

CONTEXT = 4096
"""Tokens of the longest path; max_model_len of the FastTTS artifact."""
PROBLEM = "A train leaves the station at noon and " * 12  # about as long as one of MATH-500


@dataclass(frozen=True)
class Script:
    """The text of both models, and the settings of the search."""

    writer: Process[Any]
    judge: Process[Any]
    vocabulary: Vocabulary
    problem: str
    seed: int
    sampler: Sampler
    search: Search

    @property
    def prompt(self) -> list[int]:
        return [*self.vocabulary.tokenize(self.problem), BEGIN]

    @property
    def limits(self) -> Limits:
        return Limits(self.search.step_tokens, CONTEXT)


def generated(number: int, n: int, like: str | None) -> Script:
    """A generated problem, in the manner of the recorded run `like` if one is given."""
    writing, judging = _manner(like) if like else ({}, {})
    return Script(
        Writer(number, **writing),
        Judge(number, **judging),
        SimulatedVocabulary(),
        PROBLEM,
        number,
        Sampler(0.8),
        Search(n=n),
    )


def recorded(path: str) -> Script:
    """A recorded search step by step, to be scheduled again.

    Raises:
        EngineError: the log cannot be read.
        SystemExit: it is of a search of another kind.
    """
    started, steps = _read(path)
    if started.request.search.policy not in ("beam", "dvts"):
        raise SystemExit(f"{path} is not of a search step by step: it has no score for each step.")
    vocabulary = RecordedVocabulary(steps)
    request = started.request
    return Script(
        RecordedWriter(steps, vocabulary, request.seed),
        RecordedJudge(steps, vocabulary),
        vocabulary,
        request.problem,
        request.seed,
        Sampler(1.0),
        request.search,
    )


def _read(path: str) -> tuple[RunStarted, dict[Lineage, Step]]:
    """How a recorded run began, and its nodes."""
    started, *events = read_run(path)
    assert isinstance(started, RunStarted)
    scores = {e.lineage: e.scores[-1] for e in events if isinstance(e, StepScored) and e.scores}
    return started, {
        e.lineage: Step(e.tokens, e.ending, scores.get(e.lineage))
        for e in events
        if isinstance(e, StepFinished)
    }


def _manner(path: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The step lengths and the scores of a recorded run, for a writer and a judge."""
    _, steps = _read(path)
    ends = [len(lineage) for lineage, step in steps.items() if step.ending == "end"]
    fewest = min(ends, default=1)
    later = sum(len(lineage) >= fewest for lineage in steps)
    odds = {
        at: math.log(max(step.score, 1e-6) / max(1 - step.score, 1e-6))
        for at, step in steps.items()
        if step.score is not None
    }
    related = [(odds[at[:-1]], value) for at, value in odds.items() if at[:-1] in odds]
    return (
        {
            "lengths": sorted(len(step.tokens) for step in steps.values()),
            "fewest": fewest,
            "ending": max(0.01, len(ends) / later),
        },
        {
            "mean": fmean(odds.values()),
            "spread": pstdev(odds.values()),
            "persistence": max(0.0, correlation(*zip(*related, strict=True))) if related else 0.0,
        },
    )
