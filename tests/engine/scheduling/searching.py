"""Runs a search with the embedded pair and keeps what it made of the tree."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from engine import catalogue, search
from engine.models.base import Span, TokenModel
from engine.models.chat import ChatTemplate
from engine.models.llama import LlamaModel, LlamaWeights
from engine.models.sampling import Sampler
from engine.protocol import events
from engine.scheduling.past import Past, PastNode
from engine.scheduling.scheduler import Scheduler
from engine.scheduling.settings import Counts, Limits, Mechanisms, Mode
from engine.search.policy import Candidate, Ending, Lineage
from engine.verify.formats import bind
from engine.verify.prm import Prm
from tests.engine.real_models import opened

PROBLEM = "Tom has 12 apples. He buys 7 more apples. How many apples does Tom have?"
Tree = dict[Lineage, tuple[str, str]]
"""Text and ending of each node."""


@dataclass
class Searched:
    """What came of a search."""

    events: list[events.Event] = field(default_factory=list)
    completed: list[Candidate] = field(default_factory=list)
    counts: Counts = field(default_factory=Counts)
    fed: int = 0
    unique: int = 0

    @property
    def tree(self) -> Tree:
        nodes: Tree = {}
        for event in self.events:
            if isinstance(event, events.StepFinished):
                nodes[event.lineage] = (event.text, event.ending)
            elif isinstance(event, events.DraftsDropped):
                for lineage in event.lineages:
                    nodes.pop(lineage, None)
        return nodes

    @property
    def scores(self) -> dict[Lineage, tuple[float, ...]]:
        return {e.lineage: e.scores for e in self.events if isinstance(e, events.StepScored)}

    def past(self, count: int) -> Past:
        """What a run that ended after its first `count` events knows."""
        nodes: dict[Lineage, PastNode] = {}
        for event in self.events[:count]:
            if isinstance(event, events.StepFinished):
                ending = Ending(event.ending)
                nodes[event.lineage] = PastNode(event.tokens, event.text, ending, None)
            elif isinstance(event, events.StepScored):
                node = nodes[event.lineage]
                scored = PastNode(node.tokens, node.text, node.ending, event.scores)
                nodes[event.lineage] = scored
        return Past(nodes)


class Shuffled:
    """A token model whose batches are computed in another order."""

    def __init__(self, model: LlamaModel) -> None:
        self._model = model
        self._chance = random.Random(1)

    def __getattr__(self, name: str):
        return getattr(self._model, name)

    def forward(self, spans: Sequence[Span], columns: Sequence[int] | None = None) -> np.ndarray:
        order = list(range(len(spans)))
        self._chance.shuffle(order)
        rows = self._model.forward([spans[i] for i in order], columns).copy()
        assert all(len(span.wanted) == 1 for span in spans) or len(spans) == 1
        return rows if len(spans) == 1 else rows[np.argsort(order)]


def searched(
    generator: LlamaWeights,
    verifier: LlamaWeights | None,
    policy: str = "beam",
    *,
    n: int = 8,
    capacity: int = 2048,
    paths: int | None = None,
    context: int = 200,
    step: int = 40,
    max_steps: int = 8,
    temperature: float = 0.8,
    past: Past | None = None,
    deduplicate: bool = True,
    early_scores: bool = True,
    shuffle: bool = False,
    problem: str = PROBLEM,
    passes: int = 5000,
) -> Searched:
    """Run a search to its end; more than `passes` passes count as endless."""
    result = Searched()
    with (
        opened(generator, capacity, paths or 2 * n + 2, n) as model,
        opened(verifier or generator, 2048, 2 * n + 2, 64) as judge,
    ):
        format = catalogue.load().format("seedling")
        prm = (
            Prm(judge, bind(format, judge.vocabulary, ChatTemplate("")), problem)
            if verifier
            else None
        )
        template = generator.template
        prompt = template.encode(model.vocabulary, [{"role": "user", "content": problem}])
        scheduler = Scheduler(
            cast(TokenModel, Shuffled(model)) if shuffle else model,
            prm,
            search.build(policy, n=n, max_steps=max_steps, step_tokens=step),
            Sampler(temperature),
            prompt=prompt,
            seed=5,
            limits=Limits(step, context),
            emit=result.events.append,
            past=past or Past(),
            mode=Mode(
                Mechanisms(
                    deduplicate=deduplicate, early_scores=early_scores, lookahead=early_scores
                )
            ),
        )
        for count, _ in enumerate(scheduler.run()):
            assert count < passes, "the search does not end"
            assert model.used <= model.capacity
        result.completed, result.counts = scheduler.completed, scheduler.counts
        if prm:
            result.fed, result.unique = prm.fed_tokens, prm.unique_tokens()
    return result
