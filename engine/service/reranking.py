"""Ranks what a search has completed by a model that judges in words."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from pathlib import Path

from engine import catalogue
from engine.errors import EngineError
from engine.models.base import Interrupted, TokenModel
from engine.models.chat import ChatTemplate
from engine.protocol.events import PathJudged, Phase, Warned
from engine.search.policy import Candidate
from engine.service.run import Run
from engine.verify.generative import Critic, Solution

Load = Callable[[Path, int, int], tuple[TokenModel, ChatTemplate]]
"""Opens a model for paths of so many tokens, and so many of them."""


class Reranking:
    """The last part of a run that names a model to rank with.

    Args:
        load: opens it; the models of the search are not needed any more.
        context: tokens that a path of the search may have.

    Raises:
        EngineError: there is no such model.
    """

    def __init__(self, run: Run, name: str, load: Load, context: int) -> None:
        self._run = run
        self._name = shown_name(name)
        self._path = catalogue.generator_file(name)
        self._load = load
        self._context = 2 * context + run.request.rerank_tokens
        """A path is read along with what is written about it."""

    def judge(
        self, candidates: Sequence[Candidate], until: float | None
    ) -> Generator[None, None, list[Candidate] | None]:
        """The candidates with their new scores; None if the old ones are to be kept. Yields after
        every pass.

        Args:
            until: when to stop, on the monotonic clock.
        """
        try:
            scores = yield from self._scores(candidates, until)
        except Interrupted:
            return None
        except EngineError as error:  # what the search has found is not lost with the model
            self._warn(f"The solutions could not be ranked: {error.message} {error.advice}")
            return None
        if scores is None:
            return None
        if not any(scores.values()):
            self._warn("No solution left room for a judgement: they were not ranked.")
            return None
        return [replace(candidate, scores=scores[candidate.lineage]) for candidate in candidates]

    def _scores(
        self, candidates: Sequence[Candidate], until: float | None
    ) -> Generator[None, None, dict[tuple[int, ...], tuple[float, ...]] | None]:
        run = self._run
        model, template = self._load(self._path, self._context, len(candidates))
        critic = Critic(
            model,
            template,
            catalogue.load().critique(f"{self._name} {model.name}"),
            run.request.problem.strip(),
            seed=run.request.seed,
            budget=run.request.rerank_tokens,
            context=self._context,
        )
        solutions = [Solution(c.lineage, _steps(c.text)) for c in candidates]
        scores: dict[tuple[int, ...], tuple[float, ...]] = {}
        run.emit(Phase(name="judging", model=self._name, done=0.0))
        for judgements in critic.judge(solutions):
            run.beat()
            if run.stop.is_set or (until is not None and time.monotonic() >= until):
                return None
            for judgement in judgements:
                scores[judgement.lineage] = judgement.scores
                run.emit(PathJudged(lineage=judgement.lineage, scores=judgement.scores))
                done = len(scores) / len(solutions)
                run.emit(Phase(name="judging", model=self._name, done=round(done, 2)))
            yield
        return scores

    def _warn(self, message: str) -> None:
        self._run.emit(Warned(code="rerank", message=message))


def shown_name(name: str) -> str:
    """What to call a model that was named by catalogue id or path."""
    return Path(name).name


def _steps(text: str) -> tuple[str, ...]:
    return tuple(step.strip() for step in text.split("\n\n") if step.strip())
