"""Solves one run: checks and loads what it asks for, and searches."""

from __future__ import annotations

import time

from engine import catalogue, search
from engine.errors import EngineError
from engine.models.base import Interrupted
from engine.models.chat import ChatTemplate
from engine.models.llama import LlamaModel
from engine.models.sampling import Sampler
from engine.protocol.events import Counters, RunFinished, Stop, Trouble, Warned
from engine.protocol.request import SolveRequest
from engine.scheduling.scheduler import Scheduler
from engine.scheduling.settings import MODES, Limits
from engine.search.policy import Policy
from engine.service.announcing import announce
from engine.service.judge import Judge, find_judge
from engine.service.model_pool import ModelPool, Shape
from engine.service.run import Run
from engine.service.scorer import Scorer
from engine.service.scoring import Scoring
from engine.service.searching import Searching
from engine.verify.prm import Prm

INSTRUCTION = "Please reason step by step, and put your final answer within \\boxed{}."
DEFAULT_CONTEXT = 2048


class Solver:
    """Runs requests one after another, keeping the models they share."""

    def __init__(self) -> None:
        self._pool = ModelPool()
        self._scorer = Scorer()

    def close(self) -> None:
        """Give all memory back."""
        self._pool.close()
        self._scorer.close()

    def score(self, scoring: Scoring) -> None:
        """Emit the scores of a solution, and `RunFinished` last.

        Raises:
            EngineError: it cannot be scored.
        """
        self._pool.close()
        self._scorer.score(scoring)

    def solve(self, run: Run) -> None:
        """Emit everything that happens in `run`, `RunFinished` last.

        Raises:
            EngineError: the run cannot go on.
        """
        started = time.monotonic()
        self._scorer.close()
        request = run.request
        policy = _policy(request)
        mode = MODES[request.search.mode]
        judge = _judge(request) if policy.guided else None
        try:
            generator, template = self._generator(run)
            verifier = self._verifier(run, judge) if judge else None
        except Interrupted:
            run.emit(RunFinished(stop=Stop.CANCELLED, counters=Counters()))
            return
        prompt = _prompt(request, generator, template)
        context = min(_context(request), generator.trained_context, generator.capacity)
        _check_length(len(prompt), context)
        scheduler = Scheduler(
            generator,
            verifier,
            policy,
            _sampler(request),
            prompt=prompt,
            seed=request.seed,
            limits=Limits(request.search.step_tokens, context),
            emit=run.emit,
            past=run.past,
            mode=mode,
        )
        if mode.shortcuts.any:
            run.emit(_approximate(request.search.mode))
        Searching(run, policy, scheduler, generator, verifier, started).finish()

    def _generator(self, run: Run) -> tuple[LlamaModel, ChatTemplate]:
        n = run.request.search.n
        path = catalogue.generator_file(run.request.generator)
        shape = Shape(_context(run.request), n, n)
        return self._pool.get("generator", path, shape, run.stop, announce(run, path))

    def _verifier(self, run: Run, judge: Judge) -> Prm:
        shape = judge.shape(_context(run.request), run.request.search.n)
        loading = announce(run, judge.path)
        model, template = self._pool.get("verifier", judge.path, shape, run.stop, loading)
        return Prm(
            model,
            judge.bound(model, template),
            run.request.problem.strip(),
            whole_paths=MODES[run.request.search.mode].whole_paths,
        )


def _approximate(mode: str) -> Warned:
    return Warned(
        code="approximate",
        message=f"The mode '{mode}' is approximate: it takes shortcuts that change what is found, "
        "and the same seed need not give the same tree. The default mode, exact, takes none.",
    )


def _policy(request: SolveRequest) -> Policy:
    if not request.problem.strip():
        raise EngineError(Trouble.USAGE, "The problem is empty.", "Give the text of a problem.")
    settings = request.search
    try:
        policy = search.build(
            settings.policy,
            n=settings.n,
            width=settings.width,
            max_steps=settings.max_steps,
            aggregate=settings.aggregate,
            step_tokens=settings.step_tokens,
        )
    except search.SearchError as error:
        raise EngineError(Trouble.USAGE, str(error)) from None
    if settings.choose in ("best", "weighted") and not policy.guided:
        raise EngineError(
            Trouble.USAGE,
            f"The policy '{settings.policy}' gives no scores to choose the {settings.choose} "
            "answer by.",
            "Choose by majority, or use a policy with a verifier, such as best-of-n.",
        )
    return policy


def _judge(request: SolveRequest) -> Judge:
    if request.verifier is None:
        raise EngineError(
            Trouble.USAGE,
            f"The policy '{request.search.policy}' needs a verifier, and none is named.",
            "Name a process reward model with --verifier, or use --policy majority, which needs "
            "none.",
        )
    return find_judge(request.verifier, request.prm_format)


def _prompt(request: SolveRequest, model: LlamaModel, template: ChatTemplate) -> list[int]:
    messages = [
        {"role": "system", "content": INSTRUCTION},
        {"role": "user", "content": request.problem.strip()},
    ]
    return template.encode(model.vocabulary, messages)


def _sampler(request: SolveRequest) -> Sampler:
    asked = request.sampling
    temperature = 0.0 if request.search.policy == "greedy" else asked.temperature
    return Sampler(temperature, asked.top_p, asked.top_k, asked.min_p)


def _context(request: SolveRequest) -> int:
    return request.context or DEFAULT_CONTEXT


def _check_length(prompt: int, context: int) -> None:
    if prompt + 1 >= context:
        raise EngineError(
            Trouble.USAGE,
            f"The problem takes {prompt:,} tokens, and a path may have {context:,} in all: there "
            "is no room for a solution.",
            "Shorten the problem, use a larger --context, or a model with a longer one.",
        )
