"""Scores the steps of a solution by a verifier that is open."""

from __future__ import annotations

from engine.protocol import Counters, RunFinished, StepScored, Stop
from engine.service.judge import Judge
from engine.service.model_pool import Opened
from engine.service.scoring import Scoring
from engine.verify.prm import Prm


def score(scoring: Scoring, judge: Judge, models: Opened) -> None:
    """Emit the scores of all steps, and `RunFinished` last.

    Args:
        models: the verifier alone, in the generator's place.

    Raises:
        Interrupted: the scoring was stopped.
        EngineError: the solution is too long.
    """
    request = scoring.request
    verifier = models.generator
    planned = models.planned
    prm = Prm(
        verifier,
        judge.bound(verifier, models.template),
        request.problem.strip(),
        all_memory=planned.option.job.context < planned.plan.job.context,
    )
    (judged,) = prm.score([(prm.root, request.steps)])
    scoring.emit(StepScored(lineage=(), scores=judged.scores_since(prm.root)))
    counters = Counters(
        seconds=scoring.seconds,
        verified_tokens=prm.fed_tokens,
        verifier_tree_tokens=prm.unique_tokens(),
    )
    scoring.emit(RunFinished(stop=Stop.COMPLETE, counters=counters))
