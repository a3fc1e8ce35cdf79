"""Generated searches on simulated models, and what comes of them."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from itertools import accumulate, count
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from engine import answers, catalogue, search
from engine.models.base import Span
from engine.models.chat import ChatTemplate
from engine.models.host_copies import HostCopies
from engine.models.kv_tree import KvTree, Stem
from engine.models.sampling import Sampler
from engine.models.simulated import SimulatedModel
from engine.models.simulated_text import BEGIN, Judge, Writer, lognormal
from engine.protocol import AnyEvent, BeamsSelected, NodesPruned, StepFinished, StepScored
from engine.scheduling.past import Past
from engine.scheduling.scheduler import Scheduler
from engine.scheduling.settings import MODES, Limits, Mechanisms, Mode
from engine.search.aggregate import AGGREGATES, Aggregate
from engine.search.policy import Lineage, Policy
from engine.service.history import History
from engine.verify.formats import bind
from engine.verify.prm import Judged, Prm

PROBLEM = "Is the sum of two odd numbers even?"
AMPLE = 1_000_000
TREE_SEARCHES = ["beam", "dvts", "dynamic", "vg"]
SWITCHES = [field.name for field in fields(Mechanisms) if field.type in (bool, "bool")]
PLAIN = MODES["baseline"].mechanisms
_SECONDS = 300


def tried(usually: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """On how many cases a test is tried; where more are asked for, it may take longer."""
    count = int(os.environ.get("SAPWOOD_EXACTNESS_CASES", usually))
    limit = pytest.mark.timeout(_SECONDS * max(1, count / usually))
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large]
    many = settings(max_examples=count, deadline=None, suppress_health_check=slow)
    return lambda test: limit(many(test))


@dataclass(frozen=True)
class Case:
    """What is searched; everything here may change the result."""

    policy: str
    n: int
    width: int
    max_steps: int
    aggregate: Aggregate
    sampler: Sampler
    seed: int
    step_tokens: int
    context: int
    writer: Writer
    judge: Judge
    problem: str = PROBLEM


@dataclass(frozen=True)
class Circumstances:
    """How it is computed; nothing here may change the result."""

    mechanisms: Mechanisms = PLAIN
    cells: tuple[int, int] = (AMPLE, AMPLE)
    """Of the generator's and the verifier's cache."""
    paths: tuple[int, int] = (64, 64)
    order: int | None = None
    """Seed of the order in which the spans of a batch are computed; None keeps it."""
    clock: int = 0
    """Seed of how long things seem to take."""
    past: Sequence[AnyEvent] = ()
    whole_paths: bool = False
    """Whether the verifier reads each path from its beginning."""
    copies: int = 0
    """Bytes of host memory for what leaves the generator's cache."""


@dataclass
class Outcome:
    nodes: dict[Lineage, object]
    """Tokens, text, ending and scores of all nodes that were decided upon."""
    decisions: set[object]
    answer: answers.Choice | None


@dataclass
class Finished:
    outcome: Outcome
    events: list[AnyEvent]
    least: tuple[int, int]
    """Cells that the longest path needs in each model."""


class Shuffled(SimulatedModel):
    """Computes the spans of a batch in another order, those of the same path in theirs."""

    order: random.Random

    def forward(self, spans: Sequence[Span], columns: Sequence[int] | None = None) -> np.ndarray:
        waiting = list(range(len(spans)))
        order: list[int] = []
        while waiting:
            free = [
                i
                for place, i in enumerate(waiting)
                if not any(set(spans[i].paths) & set(spans[j].paths) for j in waiting[:place])
            ]
            order.append(self.order.choice(free))
            waiting.remove(order[-1])
        rows = super().forward([spans[i] for i in order], columns)
        ends = np.cumsum([len(spans[i].wanted) for i in order])
        parts = dict(zip(order, np.split(rows, ends[:-1]), strict=True))
        return np.concatenate([parts[i] for i in range(len(spans))])


def model(process: Writer | Judge, place: int, how: Circumstances) -> SimulatedModel:
    kind = SimulatedModel if how.order is None else Shuffled
    made = kind(process, capacity=how.cells[place], paths=how.paths[place])
    if isinstance(made, Shuffled):
        made.order = random.Random(how.order)
    return made


def erratic(seed: int) -> Callable[[], float]:
    """A clock on which every step takes some time or other."""
    times = random.Random(seed)
    return accumulate(times.expovariate(1) for _ in count()).__next__


@dataclass
class Search:
    """A search on models that it may share with others."""

    case: Case
    scheduler: Scheduler
    prm: Prm
    events: list[Any]
    prompt: int

    def finished(self) -> Finished:
        policy = policy_of(self.case)
        answer = answers.choose(
            policy.final(self.scheduler.completed) or self.scheduler.frontier(),
            search.CHOICES[self.case.policy],
            partial(search.aggregate, self.case.aggregate),
        )
        written = {e.lineage: len(e.tokens) for e in self.events if isinstance(e, StepFinished)}
        longest = max(
            sum(written[lineage[: depth + 1]] for depth in range(len(lineage)))
            for lineage in written
        )
        least = (self.prompt + longest, deepest(self.prm.root))
        return Finished(outcome(self.events, answer), self.events, least)


def policy_of(case: Case) -> Policy:
    return search.build(
        case.policy,
        n=case.n,
        width=case.width,
        max_steps=case.max_steps,
        aggregate=case.aggregate,
        step_tokens=case.step_tokens,
    )


def begin(
    case: Case,
    how: Circumstances,
    generator: SimulatedModel,
    verifier: SimulatedModel,
    caches: tuple[KvTree, KvTree] | None = None,
    mode: Mode | None = None,
    clock: Callable[[], float] | None = None,
) -> Search:
    format = bind(catalogue.load().format("seedling"), verifier.vocabulary, ChatTemplate(""))
    prm = Prm(
        verifier,
        format,
        case.problem,
        whole_paths=mode.whole_paths if mode else how.whole_paths,
        cache=caches[1] if caches else None,
    )
    history = History()
    for past in how.past:
        history.add(past)
    prompt = [*generator.vocabulary.tokenize(case.problem), BEGIN]
    events: list[Any] = list(how.past)
    scheduler = Scheduler(
        generator,
        prm,
        policy_of(case),
        case.sampler,
        prompt=prompt,
        seed=case.seed,
        limits=Limits(case.step_tokens, case.context),
        emit=events.append,
        past=history.past if how.past else Past(),
        mode=mode or Mode(how.mechanisms),
        clock=clock or erratic(how.clock),
        cache=caches[0] if caches else cache_for(generator, how),
    )
    return Search(case, scheduler, prm, events, len(prompt))


def cache_for(generator: SimulatedModel, how: Circumstances) -> KvTree:
    copies = HostCopies[Stem](generator, how.copies, erratic(how.clock)) if how.copies else None
    return KvTree(generator, copies)


def solve(case: Case, how: Circumstances) -> Finished:
    generator, verifier = model(case.writer, 0, how), model(case.judge, 1, how)
    one = begin(case, how, generator, verifier)
    for _ in one.scheduler.run():
        assert generator.used <= generator.capacity
        assert verifier.used <= verifier.capacity
    return one.finished()


def outcome(events: Sequence[AnyEvent], answer: answers.Choice | None) -> Outcome:
    decisions: set[object] = set()
    decided: set[Lineage] = set()
    written: dict[Lineage, object] = {}
    scored: dict[Lineage, object] = {}
    for event_ in events:
        match event_:
            case BeamsSelected(round=round, kept=kept, completed=completed):
                decisions.add((round, kept, completed))
                decided.update(kept, completed)
            case NodesPruned(round=round, lineages=lineages, reason=reason):
                decisions.add((round, lineages, reason))
                decided.update(lineages)
            case StepFinished(lineage=lineage):
                written[lineage] = (event_.tokens, event_.text, event_.ending)
            case StepScored(lineage=lineage, scores=scores):
                scored[lineage] = scores
            case _:
                pass
    nodes: dict[Lineage, object] = {
        lineage: (written[lineage], scored.get(lineage)) for lineage in decided
    }
    return Outcome(nodes, decisions, answer)


def deepest(judged: Judged) -> int:
    return max([judged.stem.end, *map(deepest, judged.children.values())])


writers = st.builds(
    Writer,
    seed=st.integers(0, 2**32),
    lengths=st.builds(lognormal, st.floats(2, 8), st.floats(0, 1), st.just(64)),
    opening=st.integers(1, 3),
    fewest=st.integers(1, 4),
    ending=st.floats(0.15, 0.8),
    early_forks=st.floats(0, 0.6),
    forks=st.floats(0, 0.3),
    spread=st.floats(0, 8),
)
# A spread of 0 makes all scores equal, so that every decision is a tie.
judges = st.builds(
    Judge,
    seed=st.integers(0, 2**32),
    spread=st.sampled_from([0.0, 1.5, 6.0]),
    persistence=st.floats(0, 0.99),
)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    policy = draw(st.sampled_from(TREE_SEARCHES) | st.sampled_from(list(search.POLICIES)))
    width = draw(st.integers(1, 4))
    n = width * draw(st.integers(1, 8 // width))
    if policy != "dvts":
        n += draw(st.integers(0, width - 1))
    return Case(
        policy,
        n,
        width,
        max_steps=draw(st.integers(1, 6)),
        aggregate=draw(st.sampled_from(list(AGGREGATES))),
        sampler=Sampler(temperature=draw(st.sampled_from([0.0, 0.5, 0.8, 1.0]))),
        seed=draw(st.integers(0, 2**32)),
        step_tokens=draw(st.integers(2, 40)),
        context=draw(st.integers(20, 200)),
        writer=draw(writers),
        judge=draw(judges),
    )


@st.composite
def circumstances(
    draw: st.DrawFn, plain: Finished, n: int, so_far: Sequence[AnyEvent] = ()
) -> Circumstances:
    """Anything at all, with caches from the least that works to twice what `n` paths need.

    Args:
        so_far: events of a run, which was interrupted after any of them.
    """

    def between(least: int, most: int) -> int:
        return draw(st.sampled_from([least, most]) | st.integers(least, most))

    return Circumstances(
        mechanisms=draw(st.builds(Mechanisms, **dict.fromkeys(SWITCHES, st.booleans()))),
        cells=(
            between(plain.least[0], 2 * n * plain.least[0]),
            between(plain.least[1], 2 * n * plain.least[1]),
        ),
        paths=(between(2, 2 * n + 2), between(2, 2 * n + 2)),
        order=draw(st.none() | st.integers(0, 2**32)),
        clock=draw(st.integers(0, 2**32)),
        past=so_far[: between(0, len(so_far))],
        whole_paths=draw(st.booleans()),
        copies=draw(st.sampled_from([0, 60, 1000])),
    )
