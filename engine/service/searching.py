"""One search in progress: its clock, its reports, and its best answer so far."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

import psutil

from engine import answers, search
from engine.models.base import Interrupted, TokenModel
from engine.protocol.events import (
    Answered,
    AnswerGroup,
    Counters,
    Memory,
    Phase,
    RunFinished,
    Stop,
    Throughput,
)
from engine.scheduling.scheduler import Scheduler
from engine.search.policy import Candidate, Policy
from engine.service.run import Run
from engine.verify.prm import Prm

_REPORT_EVERY = 0.5
"""Seconds between two reports."""


class Searching:
    """Drives a scheduler to its end, or until the run is cancelled or out of time."""

    def __init__(
        self,
        run: Run,
        policy: Policy,
        scheduler: Scheduler,
        generator: TokenModel,
        verifier: Prm | None,
        started: float,
    ) -> None:
        self._run = run
        self._policy = policy
        self._scheduler = scheduler
        self._generator = generator
        self._verifier = verifier
        self._started = started
        self._process = psutil.Process()
        self._last_report = started
        self._last_generated = 0
        self._answered = 0
        settings = run.request.search
        self._method: answers.Method = settings.choose or search.CHOICES[settings.policy]
        self._aggregate = partial(search.aggregate, settings.aggregate)

    def finish(self) -> None:
        """Search, then give the final answer, or the best there is."""
        run = self._run
        stop = self._search()
        self._report()
        run.emit(Phase(name="checking"))
        done: Sequence[Candidate] = self._scheduler.completed
        if stop is Stop.COMPLETE:
            done = self._policy.final(done)
        self._answer(done or self._scheduler.frontier())
        run.emit(RunFinished(stop=stop, counters=self._counters()))

    def _search(self) -> Stop:
        limit = self._run.request.time_limit
        passes = self._scheduler.run()
        while True:
            if self._run.stop.is_set:
                return Stop.CANCELLED
            if limit is not None and time.monotonic() - self._started >= limit:
                return Stop.TIME
            try:
                if next(passes, passes) is passes:
                    return Stop.COMPLETE
            except Interrupted:
                return Stop.CANCELLED
            self._run.beat()
            if time.monotonic() - self._last_report >= _REPORT_EVERY:
                self._report()
                self._answer_so_far()

    def _report(self) -> None:
        now = time.monotonic()
        generated = self._scheduler.counts.generated
        self._run.emit(
            Throughput(
                generated=generated,
                verified=self._verifier.fed_tokens if self._verifier else 0,
                rate=(generated - self._last_generated) / max(now - self._last_report, 1e-9),
                beams=self._scheduler.beams,
            )
        )
        judge = self._verifier.model if self._verifier else None
        self._run.emit(
            Memory(
                process=self._process.memory_info().rss,
                generator_cells=self._generator.used,
                generator_capacity=self._generator.capacity,
                verifier_cells=judge.used if judge else 0,
                verifier_capacity=judge.capacity if judge else 0,
            )
        )
        self._last_report, self._last_generated = now, generated

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
        self._run.emit(
            Answered(
                answer=choice.answer,
                text=choice.text,
                lineage=choice.lineage,
                score=choice.score if self._policy.guided else None,
                votes=tuple(AnswerGroup(v.answer, v.count, v.weight) for v in choice.votes),
                correct=None if expected is None else answers.equivalent(choice.answer, expected),
            )
        )

    def _counters(self) -> Counters:
        counts = self._scheduler.counts
        return Counters(
            seconds=time.monotonic() - self._started,
            generated_tokens=counts.generated,
            draft_tokens=counts.drafted,
            dropped_tokens=counts.dropped,
            prefill_tokens=counts.prefill,
            recomputed_tokens=counts.recomputed,
            verified_tokens=self._verifier.fed_tokens if self._verifier else 0,
            verifier_tree_tokens=self._verifier.unique_tokens() if self._verifier else 0,
            decode_steps=counts.decode_steps,
            nodes=counts.nodes,
            completions=len(self._scheduler.completed),
            ties_flipped=self._run.ties_flipped,
        )
