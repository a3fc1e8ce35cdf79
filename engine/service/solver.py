"""Solves one run: checks and loads what it asks for, and searches."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from dataclasses import replace
from functools import partial
from pathlib import Path

from engine import catalogue, search
from engine.errors import EngineError
from engine.memory.estimate import CacheType
from engine.memory.options import DEFAULT_CONTEXT, Job
from engine.models.base import Interrupted, TokenModel
from engine.models.chat import ChatTemplate
from engine.models.sampling import Sampler
from engine.models.stop import StopSignal
from engine.protocol.events import Counters, RunFinished, Stop, Trouble, Warned
from engine.protocol.request import Search, SolveRequest
from engine.scheduling.scheduler import Scheduler
from engine.scheduling.settings import MODES, Limits, Mode
from engine.search.policy import Policy
from engine.service.announcing import announce
from engine.service.drafting import approximate, drafter, paired, with_draft
from engine.service.judge import Judge, find_judge
from engine.service.model_pool import Loading, ModelPool
from engine.service.planning import Ask, Warn
from engine.service.reranking import Reranking, shown_name
from engine.service.run import Run
from engine.service.scorer import score
from engine.service.scoring import Scoring
from engine.service.searching import Searching
from engine.service.shared import Shared
from engine.verify.prm import Prm

SCORE_CONTEXT = 4096


class Solver:
    """Runs requests, those that use the same models side by side."""

    def __init__(self, pool: ModelPool | None = None) -> None:
        self._pool = pool or ModelPool()
        self._shared: Shared | None = None
        """What the runs that are going on have in common."""
        self._reserved = False
        """Whether something has the models to itself, over several passes."""
        self._line: list[object] = []
        """Places of what waits for models, in the order in which it came."""

    def close(self) -> None:
        """Give all memory back."""
        self._shared = None
        self._pool.close()

    def score(self, scoring: Scoring) -> Generator[None]:
        """Emit the scores of a solution, and `RunFinished` last, when no search is going on.

        Raises:
            EngineError: it cannot be scored.
        """
        scoring.check()
        request = scoring.request
        judge = find_judge(request.verifier, request.prm_format)
        if judge.warning is not None:
            scoring.emit(judge.warning)
        yield from self._turn(scoring.stop, lambda: not self._in_use)
        try:
            if scoring.stop.is_set:
                raise Interrupted
            job = Job(1, 1, request.context or SCORE_CONTEXT, outputs=judge.markers, precise=True)
            ask = Ask(judge.path, None, job)
            score(scoring, judge, self._pool.open(ask, scoring.stop, *_listeners(scoring)))
        except Interrupted:
            scoring.emit(RunFinished(stop=Stop.CANCELLED, counters=Counters()))

    @property
    def _in_use(self) -> bool:
        return self._reserved or self._shared is not None

    def solve(self, run: Run) -> Generator[None]:
        """Emit everything that happens in `run`, `RunFinished` last; yields after every pass.

        Raises:
            EngineError: the run cannot go on.
        """
        request = run.request
        policy = _policy(request)
        judge = _judge(request) if policy.guided else None
        if judge is not None and judge.warning is not None:
            run.emit(judge.warning)
        reranking = self._reranking(run)
        ask = _ask(request, judge)
        yield from self._turn(run.stop, lambda: self._free_for(ask))
        started = time.monotonic()
        try:
            shared = self._join(run, ask)
        except Interrupted:
            run.emit(RunFinished(stop=Stop.CANCELLED, counters=run.spent))
            return
        try:
            verifier = _prm(request, shared, judge) if judge else None
            scheduler = _scheduler(run, policy, shared, verifier, ask)
            with shared.joined(scheduler, run.stop):
                searching = Searching(
                    run, policy, scheduler, shared.together, shared.models, verifier, started
                )
                stop = yield from searching.to_the_end()
        finally:
            if shared.empty and self._shared is shared:
                self._shared = None
                self._pool.remember(shared.models)
        if reranking is not None and stop is Stop.COMPLETE:
            stop = yield from self._rerank(run, searching, reranking)
        searching.finish(stop)

    def _reranking(self, run: Run) -> Reranking | None:
        request = run.request
        if request.rerank is None:
            return None

        name = request.rerank

        def load(path: Path, context: int, paths: int) -> tuple[TokenModel, ChatTemplate]:
            job = Job(paths, paths, context)
            ask = Ask(path, None, job, limit=request.budget, force=request.force)
            models = self._pool.open(ask, run.stop, *_listeners(run, shown_name(name)))
            return models.generator, models.template

        return Reranking(run, name, load, _context(request))

    def _rerank(
        self, run: Run, searching: Searching, reranking: Reranking
    ) -> Generator[None, None, Stop]:
        """Judge by a model that takes the place of all others, once no search needs those."""
        yield from self._turn(run.stop, lambda: not self._in_use)
        if run.stop.is_set:
            return Stop.CANCELLED
        self._reserved = True
        try:
            return (yield from searching.rerank(reranking))
        finally:
            self._reserved = False

    def _turn(self, stop: StopSignal, free: Callable[[], bool]) -> Generator[None]:
        """Wait until the models are free for something, or it is stopped.

        Who came first goes first: what asks for other models is not kept waiting for ever by runs
        that share those in use.
        """
        place = object()
        self._line.append(place)
        try:
            while not stop.is_set and (self._line[0] is not place or not free()):
                yield
        finally:
            self._line.remove(place)

    def _free_for(self, ask: Ask) -> bool:
        """Whether a search may begin now: alone, or beside those that use the same models."""
        if self._reserved:
            return False
        return self._shared is None or self._shared.suits(ask)

    def _join(self, run: Run, ask: Ask) -> Shared:
        """Take part in what is going on, or have the models opened."""
        if run.stop.is_set:
            raise Interrupted
        if self._shared is not None:
            return self._shared
        models = self._pool.open(ask, run.stop, *_listeners(run))
        copies = MODES[run.request.search.mode].mechanisms.host_copies
        shared = Shared(ask, models, self._pool.watch, copies=copies)
        self._shared = shared
        return shared


def _scheduler(
    run: Run, policy: Policy, shared: Shared, verifier: Prm | None, ask: Ask
) -> Scheduler:
    request = run.request
    generator = shared.models.generator
    mode = MODES[request.search.mode]
    if mode.shortcuts.any:
        run.emit(_approximate(request.search.mode))
    if request.drafting is not None:
        mode = paired(mode)
        if warning := approximate(request.drafting):
            run.emit(warning)
    prompt = shared.models.template.ask(generator.vocabulary, request.problem)
    context = _longest(run, shared)
    _check_length(len(prompt), context)
    return Scheduler(
        generator,
        verifier,
        policy,
        _sampler(request),
        prompt=prompt,
        seed=request.seed,
        limits=Limits(request.search.step_tokens, context),
        emit=run.emit,
        past=run.past,
        mode=mode if shared.models.turns is None else _in_turns(mode),
        cache=shared.cache,
        drafter=drafter(request, shared, ask),
    )


def _ask(request: SolveRequest, judge: Judge | None) -> Ask:
    settings = request.search
    job = Job(
        settings.n,
        settings.width,
        _context(request),
        CacheType(request.cache),
        verifier_keeps=not MODES[settings.mode].whole_paths,
    )
    if judge is not None:
        job = replace(job, markers=judge.markers)
    ask = Ask(
        catalogue.generator_file(request.generator),
        judge.path if judge else None,
        job,
        limit=request.budget,
        force=request.force,
    )
    return with_draft(ask, request)


def _listeners(run: Run | Scoring, name: str = "") -> tuple[Loading, Warn]:
    """What hears of models being loaded, by `name` or as they call themselves, and of what the user
    should know of them."""

    def warn(code: str, message: str) -> None:
        run.emit(Warned(code=code, message=message))

    return partial(announce, run, name=name), warn


def _prm(request: SolveRequest, shared: Shared, judge: Judge) -> Prm:
    model, template = shared.models.verifier, shared.models.verifier_template
    assert model is not None
    assert template is not None
    return Prm(
        model,
        judge.bound(model, template),
        request.problem.strip(),
        whole_paths=MODES[request.search.mode].whole_paths,
        cache=shared.verifier_cache,
    )


def _in_turns(mode: Mode) -> Mode:
    """Verify when nothing else can be done: each pass costs two changes of turn."""
    patient = replace(mode.mechanisms, early_scores=False, verify_tokens=sys.maxsize)
    return replace(mode, mechanisms=patient)


def _approximate(mode: str) -> Warned:
    return Warned(
        code="approximate",
        message=f"The mode '{mode}' is approximate: it takes shortcuts that change what is found, "
        "and the same seed need not give the same tree. The default mode, exact, takes none.",
    )


def policy_of(settings: Search) -> Policy:
    """The policy of a request.

    Raises:
        SearchError: the numbers do not fit together or a name is unknown.
    """
    return search.build(
        settings.policy,
        n=settings.n,
        width=settings.width,
        max_steps=settings.max_steps,
        aggregate=settings.aggregate,
        step_tokens=settings.step_tokens,
    )


def _policy(request: SolveRequest) -> Policy:
    if not request.problem.strip():
        raise EngineError(Trouble.USAGE, "The problem is empty.", "Give the text of a problem.")
    settings = request.search
    try:
        policy = policy_of(settings)
    except search.SearchError as error:
        raise EngineError(Trouble.USAGE, str(error)) from None
    scored = policy.guided or request.rerank is not None
    if settings.choose in ("best", "weighted") and not scored:
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


def _sampler(request: SolveRequest) -> Sampler:
    asked = request.sampling
    temperature = 0.0 if request.search.policy == "greedy" else asked.temperature
    return Sampler(temperature, asked.top_p, asked.top_k, asked.min_p)


def _context(request: SolveRequest) -> int:
    return request.context or DEFAULT_CONTEXT


def _longest(run: Run, shared: Shared) -> int:
    """Tokens of the longest path: what is asked for, as far as models and memory go."""
    asked, planned = run.request.context, shared.models.planned
    trained = planned.plan.job.context
    if asked is not None and trained < asked:
        run.emit(
            Warned(
                code="context",
                message=f"Paths end at {trained:,} tokens, not at {asked:,}: no more were these "
                "models made for.",
            )
        )
    generator = shared.models.generator
    return min(_context(run.request), generator.capacity, planned.option.job.context)


def _check_length(prompt: int, context: int) -> None:
    if prompt + 1 >= context:
        raise EngineError(
            Trouble.USAGE,
            f"The problem takes {prompt:,} tokens, and a path may have {context:,} in all: there "
            "is no room for a solution.",
            "Shorten the problem, use a larger --context, or a model with a longer one.",
        )
