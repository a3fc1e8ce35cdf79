"""One search in progress: its clock, its reports, and its best answer so far."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from functools import partial

import psutil

from engine import answers, search
from engine.memory.devices import Kind
from engine.models.base import Interrupted
from engine.protocol.events import (
    Answered,
    AnswerGroup,
    Counters,
    Memory,
    Phase,
    RunFinished,
    Stop,
    Throughput,
    Warned,
)
from engine.scheduling.scheduler import Scheduler
from engine.scheduling.together import Together
from engine.search.policy import Candidate, Policy
from engine.service.measuring import over_budget
from engine.service.model_pool import Opened
from engine.service.reranking import Reranking
from engine.service.run import Run
from engine.verify.prm import Prm

_REPORT_EVERY = 0.5
"""Seconds between two reports."""
_OF_THE_TREE = {"nodes", "completions", "verifier_tree_tokens"}
"""Counters of what there is, which a run that goes on has all of again."""


class Searching:
    """Drives a scheduler to its end, or until the run is cancelled or out of time."""

    def __init__(
        self,
        run: Run,
        policy: Policy,
        scheduler: Scheduler,
        together: Together,
        models: Opened,
        verifier: Prm | None,
        started: float,
    ) -> None:
        self._run = run
        self._policy = policy
        self._scheduler = scheduler
        self._together = together
        self._models = models
        self._verifier = verifier
        self._started = started
        self._process = psutil.Process()
        self._last_report = started
        self._last_generated = 0
        self._answered = 0
        self._told_over_budget = False
        settings = run.request.search
        self._method: answers.Method = settings.choose or search.CHOICES[settings.policy]
        self._scored = policy.guided
        self._done: Sequence[Candidate] = ()
        self._aggregate = partial(search.aggregate, settings.aggregate)

    def to_the_end(self) -> Generator[None, None, Stop]:
        """Search, then give the answer, or the best there is; yields after every pass."""
        run = self._run
        stop = yield from self._search()
        self._report()
        run.emit(Phase(name="checking"))
        done: Sequence[Candidate] = self._scheduler.completed
        if stop is Stop.COMPLETE:
            done = self._done = self._policy.final(done)
        self._answer(done or self._scheduler.frontier())
        return stop

    def rerank(self, reranking: Reranking) -> Generator[None, None, Stop]:
        """Answer again by other scores; where that is stopped, the answer stays as it is."""
        limit = self._run.request.time_limit
        until = None if limit is None else self._started + limit
        judged = yield from reranking.judge(self._done, until)
        if self._run.stop.is_set:
            return Stop.CANCELLED
        if judged is None:
            late = until is not None and time.monotonic() >= until
            return Stop.TIME if late else Stop.COMPLETE
        self._scored = True
        if self._method not in ("best", "weighted"):
            self._method = self._run.request.search.choose or "weighted"
        self._answer(judged)
        return Stop.COMPLETE

    def finish(self, stop: Stop) -> None:
        """End the run."""
        self._run.emit(RunFinished(stop=stop, counters=self._counters()))

    def _search(self) -> Generator[None, None, Stop]:
        limit = self._run.request.time_limit
        while not self._scheduler.done:
            if self._run.stop.is_set:
                return Stop.CANCELLED
            if limit is not None and time.monotonic() - self._started >= limit:
                return Stop.TIME
            try:
                self._together.advance(self._scheduler)
            except Interrupted:
                return Stop.CANCELLED
            self._run.beat()
            if time.monotonic() - self._last_report >= _REPORT_EVERY:
                self._report()
                self._answer_so_far()
            yield
        return Stop.COMPLETE

    def _report(self) -> None:
        now = time.monotonic()
        generated = self._scheduler.counts.generated
        self._run.emit(
            Throughput(
                generated=self._run.spent.generated_tokens + generated,
                verified=self._run.spent.verified_tokens + self._verified,
                rate=(generated - self._last_generated) / max(now - self._last_report, 1e-9),
                beams=self._scheduler.beams,
            )
        )
        self._report_memory()
        self._last_report, self._last_generated = now, generated

    def _report_memory(self) -> None:
        process = self._process.memory_info().rss
        budget = self._models.planned.plan.budget
        generator, verifier = self._models.generator, self._models.verifier
        self._run.emit(
            Memory(
                process=process,
                generator_cells=generator.used,
                generator_capacity=generator.capacity,
                verifier_cells=verifier.used if verifier else 0,
                verifier_capacity=verifier.capacity if verifier else 0,
                device=budget.device.name,
                budget=budget.bytes,
                **self._models.memory(),
            )
        )
        message = "" if budget.device.kind is Kind.GPU else over_budget(process, budget.bytes)
        if message and not self._told_over_budget:
            self._told_over_budget = True
            self._run.emit(Warned(code="memory", message=message))

    def _answer_so_far(self) -> None:
        done = self._scheduler.completed
        if len(done) > self._answered:
            self._answered = len(done)
            self._answer(done)

    def _answer(self, candidates: Sequence[Candidate]) -> None:
        choice = answers.choose(candidates, self._method, self._aggregate)
        if choice is None:
            return
        expected = self._run.request.expected
        votes = sorted(choice.votes, key=lambda v: (v.answer != choice.answer, -v.count))
        self._run.emit(
            Answered(
                answer=choice.answer,
                text=choice.text,
                lineage=choice.lineage,
                score=choice.score if self._scored else None,
                votes=tuple(AnswerGroup(v.answer, v.count, v.weight) for v in votes),
                correct=None if expected is None else answers.equivalent(choice.answer, expected),
            )
        )

    def _counters(self) -> Counters:
        counts, turns = self._scheduler.counts, self._models.turns
        now = Counters(
            seconds=time.monotonic() - self._started,
            generated_tokens=counts.generated,
            draft_tokens=counts.drafted,
            dropped_tokens=counts.dropped,
            prefill_tokens=counts.prefill,
            recomputed_tokens=counts.recomputed,
            evicted_tokens=counts.evicted,
            restored_tokens=counts.restored,
            verified_tokens=self._verified,
            verifier_tree_tokens=self._verifier.unique_tokens() if self._verifier else 0,
            decode_steps=counts.decode_steps,
            nodes=counts.nodes,
            helper_tokens=counts.helper,
            accepted_tokens=counts.accepted,
            steps_drafted=counts.steps_drafted,
            steps_accepted=counts.steps_accepted,
            completions=len(self._scheduler.completed),
            turns=turns.changes if turns else 0,
            turn_seconds=turns.seconds if turns else 0.0,
            ties_flipped=self._run.ties_flipped,
        )
        return _together(self._run.spent, now)

    @property
    def _verified(self) -> int:
        return self._verifier.fed_tokens if self._verifier else 0


def _together(before: Counters, now: Counters) -> Counters:
    """What a run cost that was gone on with."""
    return Counters(
        **{
            name: getattr(now, name) + (0 if name in _OF_THE_TREE else getattr(before, name))
            for name in Counters.__struct_fields__
        }
    )
