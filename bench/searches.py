"""One search after another on the same two models, in any mode, and what came of each."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest.mock import patch

import msgspec

from engine import answers, catalogue, search
from engine.models.base import Span, TokenModel
from engine.models.chat import ChatTemplate
from engine.models.host_copies import HostCopies
from engine.models.kv_tree import KvTree, Stem
from engine.models.llama import LlamaModel, LlamaWeights
from engine.models.sampling import Sampler
from engine.models.stop import StopSignal
from engine.protocol import AnyEvent, SolveRequest, encode
from engine.protocol.events import BeamsSelected, NodesPruned, StepFinished, StepScored
from engine.scheduling.past import Past
from engine.scheduling.scheduler import Scheduler
from engine.scheduling.settings import Counts, Limits, Mode
from engine.search.policy import Lineage
from engine.service.run import Run
from engine.verify.formats import BoundFormat, bind
from engine.verify.prm import Prm

SMOLLM = "smollm2-135m-instruct"
WIDTH = 4
HOT = 1.2
"""Temperature at which trees are compared: siblings part early, much is drafted, and tokens are
drawn that are about as likely as others."""
_COPIES = 2**30
"""Bytes that host copies may take."""
_MARKERS = 64
_PAD = 256
"""Cells that llama.cpp rounds up to."""
_LENGTHS = {"seedling": (40, 256, 256)}
_SHORT = (4, 32, 512)
"""Steps of a solution, tokens of a step and of a path: little, where a model would write on and
on."""


@dataclass(frozen=True)
class Pair:
    """A generator and a verifier with caches of their own."""

    generator: TokenModel
    verifier: TokenModel
    format: BoundFormat
    prompt: Callable[[str], list[int]]
    limits: Limits
    max_steps: int
    clock: Callable[[], float] = time.perf_counter


@dataclass(frozen=True)
class Written:
    """A node of the tree: its tokens and how it ended, and its scores."""

    tokens: tuple[int, ...]
    ending: str
    scores: tuple[float, ...]


class Meter:
    """What a model computes, in how many seconds, and the cells that it holds meanwhile."""

    def __init__(self, model: TokenModel, clock: Callable[[], float]) -> None:
        self.tokens = 0
        self.seconds = 0.0
        self.most = 0
        """Cells, shared ones counted once."""
        self.longest = 0
        """Tokens of the longest path."""
        self._model = model
        self._forward = model.forward
        self._clock = clock

    def __call__(self, spans: Sequence[Span], columns: Sequence[int] | None = None) -> Any:
        begin = self._clock()
        rows = self._forward(spans, columns)
        self.seconds += self._clock() - begin
        self.tokens += sum(len(span.tokens) for span in spans)
        self.most = max(self.most, self._model.used)
        lengths = (self._model.length(span.paths[0]) for span in spans)
        self.longest = max(self.longest, *lengths)
        return rows


@dataclass(frozen=True)
class Outcome:
    """One problem solved."""

    seconds: float
    """Of the pair's clock."""
    generator: Meter
    verifier: Meter
    counts: Counts
    nodes: Mapping[Lineage, Written]
    """All that were decided on."""
    decisions: frozenset[object]
    answer: str | None

    @property
    def rows(self) -> int:
        """Decoded, to draw tokens from."""
        return self.generator.tokens - self.counts.prefill


@contextmanager
def opened(
    generator: str,
    n: int,
    *,
    paths: int = 16,
    cells: tuple[int, int] | None = None,
    equal: bool = False,
) -> Iterator[Pair]:
    """A generator of the catalogue and the seedling's verifier, for searches of up to `n` paths.

    Args:
        equal: verify by the generator's own weights, asked as RLHFlow's verifiers are. What they
            say means little, but reading a step costs what it does where both are of one size.
        paths: how many of full length each cache has room for.
        cells: of the generator's and the verifier's, if that is given instead.
    """
    steps, tokens, context = _LENGTHS.get(generator, _SHORT)
    writing = catalogue.generator_file(generator)
    named = (str(writing), "rlhflow") if equal else ("seedling", None)
    path, format = catalogue.verifier_file(*named)
    if equal:  # its tokens have other numbers than those of RLHFlow's own
        format = msgspec.structs.replace(format, good_id=None, bad_id=None)
    weights = LlamaWeights(writing), LlamaWeights(path)
    sizes = [-(-size // _PAD) * _PAD for size in cells or (paths * context, paths * context)]
    models = [
        LlamaModel(w, capacity=size, paths=2 * n + 2, outputs=outputs, stop=StopSignal())
        for w, size, outputs in zip(weights, sizes, (n, max(n, _MARKERS)), strict=True)
    ]
    writer, judge = models
    template = weights[0].template
    asking = template if equal else ChatTemplate("")
    limits = Limits(tokens, min(context, writer.trained_context))
    try:
        yield Pair(
            writer,
            judge,
            bind(format, judge.vocabulary, asking),
            partial(template.ask, writer.vocabulary),
            limits,
            steps,
        )
    finally:
        for model in models:
            model.close()
        for loaded in weights:
            loaded.close()


def solve(
    pair: Pair, problem: str, mode: Mode, *, n: int, seed: int, temperature: float = 0.8
) -> Outcome:
    """Beam search on one problem, its events encoded as in the worker process."""
    heard: list[AnyEvent] = []

    def send(event: AnyEvent) -> None:
        encode(event)
        heard.append(event)

    pair.generator.reset()
    pair.verifier.reset()
    copies = None
    if mode.mechanisms.host_copies:
        copies = HostCopies[Stem](pair.generator, _COPIES, pair.clock)
    writing, judging = (Meter(model, pair.clock) for model in (pair.generator, pair.verifier))
    policy = search.build(
        "beam", n=n, width=WIDTH, max_steps=pair.max_steps, step_tokens=pair.limits.step
    )
    with (
        patch.object(pair.generator, "forward", writing),
        patch.object(pair.verifier, "forward", judging),
    ):
        begin = pair.clock()
        prm = Prm(pair.verifier, pair.format, problem, whole_paths=mode.whole_paths)
        scheduler = Scheduler(
            pair.generator,
            prm,
            policy,
            Sampler(temperature),
            prompt=pair.prompt(problem),
            seed=seed,
            limits=pair.limits,
            emit=Run("bench", SolveRequest(problem=problem), send=send).emit,
            past=Past(),
            mode=mode,
            clock=pair.clock,
            cache=KvTree(pair.generator, copies),
        )
        for _ in scheduler.run():
            pass
        seconds = pair.clock() - begin
    choice = answers.choose(
        policy.final(scheduler.completed) or scheduler.frontier(),
        search.CHOICES["beam"],
        partial(search.aggregate, "last"),
    )
    nodes, decisions = _tree(heard)
    return Outcome(
        seconds,
        writing,
        judging,
        scheduler.counts,
        nodes,
        decisions,
        choice and choice.answer,
    )


def _tree(heard: Sequence[AnyEvent]) -> tuple[dict[Lineage, Written], frozenset[object]]:
    """The nodes that were decided on, and the decisions; what was only drafted is left out."""
    written: dict[Lineage, StepFinished] = {}
    scored: dict[Lineage, tuple[float, ...]] = {}
    decided: set[Lineage] = set()
    decisions: set[object] = set()
    for event in heard:
        match event:
            case StepFinished():
                written[event.lineage] = event
            case StepScored():
                scored[event.lineage] = event.scores
            case BeamsSelected(round=round, kept=kept, completed=completed):
                decisions.add((round, kept, completed))
                decided.update(kept, completed)
            case NodesPruned(round=round, lineages=lineages):
                decisions.add((round, lineages))
                decided.update(at for at in lineages if at in written)
            case _:
                pass
    nodes = {
        at: Written(written[at].tokens, written[at].ending, scored.get(at, ())) for at in decided
    }
    return nodes, frozenset(decisions)
