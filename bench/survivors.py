"""The same search with its verifier on llama.cpp and on torch: do the same paths survive?"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from engine import catalogue, search, seedling
from engine.models.base import TokenModel
from engine.models.chat import ChatTemplate
from engine.models.hf.model import HfModel
from engine.models.hf.weights import HfWeights
from engine.models.llama import LlamaModel, LlamaWeights
from engine.models.sampling import Sampler
from engine.models.stop import StopSignal
from engine.protocol import events
from engine.scheduling.past import Past
from engine.scheduling.scheduler import Scheduler
from engine.scheduling.settings import Limits
from engine.search.policy import Lineage
from engine.seedling.checkpoint import write_checkpoint
from engine.verify.formats import bind
from engine.verify.prm import Prm

N = 8
WIDTH = 4
_CONTEXT = 300
_SEED = 5


@dataclass(frozen=True, slots=True)
class Engines:
    """The seedling's generator, and its verifier on both engines."""

    generator: LlamaModel
    template: ChatTemplate
    llama: TokenModel
    torch: TokenModel


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first round in which other paths survived."""

    round: int
    llama: tuple[Lineage, ...]
    """Paths that only llama.cpp's scores keep."""
    torch: tuple[Lineage, ...]
    margin: float
    """Between the worst of the former and the best of the latter, by llama.cpp's scores."""


@dataclass(frozen=True, slots=True)
class Comparison:
    decisions: int
    """Rounds that both decided."""
    largest: float
    """Largest difference of a score that both gave to the same step."""
    divergence: Divergence | None


@contextmanager
def engines(threads: int | None = None) -> Iterator[Engines]:
    """Open the embedded pair; the verifier's GGUF file also as a checkpoint for transformers."""
    writer = LlamaWeights(seedling.generator_path())
    judge = LlamaWeights(seedling.verifier_path())
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = write_checkpoint(seedling.verifier_path(), Path(folder))
        weights = HfWeights(checkpoint, device="cpu", threads=threads)
    stop = StopSignal()
    paths = 2 * N + 2
    cells = paths * _CONTEXT
    native = [
        LlamaModel(w, capacity=cells, paths=paths, outputs=64, stop=stop, threads=threads)
        for w in (writer, judge)
    ]
    template = writer.template
    torch = HfModel(weights, capacity=cells, paths=paths, stop=stop)
    yield Engines(native[0], template, native[1], torch)
    for model in native:
        model.close()
    writer.close()
    judge.close()


def compare(engines: Engines, problem: str) -> Comparison:
    """Search the problem's tree once with each engine for the verifier."""
    first = _search(engines, engines.llama, problem)
    second = _search(engines, engines.torch, problem)
    scores = [_scores(log) for log in (first, second)]
    both = scores[0].keys() & scores[1].keys()
    largest = max(
        (abs(a - b) for n in both for a, b in zip(scores[0][n], scores[1][n], strict=True)),
        default=0.0,
    )
    decisions = 0
    for ours, theirs in zip(_decisions(first), _decisions(second), strict=False):
        llama = tuple(sorted(set(ours.kept) - set(theirs.kept)))
        torch = tuple(sorted(set(theirs.kept) - set(ours.kept)))
        if llama or torch:
            margin = _edge(llama, scores[0], min) - _edge(torch, scores[0], max)
            return Comparison(decisions, largest, Divergence(ours.round, llama, torch, margin))
        decisions += 1
    return Comparison(decisions, largest, None)


def _search(engines: Engines, judge: TokenModel, problem: str) -> list[events.Event]:
    judge.reset()
    engines.generator.reset()
    log: list[events.Event] = []
    format = bind(catalogue.load().format("seedling"), judge.vocabulary, ChatTemplate(""))
    prompt = engines.template.encode(
        engines.generator.vocabulary, [{"role": "user", "content": problem}]
    )
    scheduler = Scheduler(
        engines.generator,
        Prm(judge, format, problem),
        search.build("beam", n=N, width=WIDTH, max_steps=10, step_tokens=60),
        Sampler(0.8),
        prompt=prompt,
        seed=_SEED,
        limits=Limits(60, _CONTEXT),
        emit=log.append,
        past=Past(),
    )
    for _ in scheduler.run():
        pass
    return log


def _scores(log: Sequence[events.Event]) -> dict[Lineage, tuple[float, ...]]:
    return {e.lineage: e.scores for e in log if isinstance(e, events.StepScored)}


def _decisions(log: Sequence[events.Event]) -> list[events.BeamsSelected]:
    return [event for event in log if isinstance(event, events.BeamsSelected)]


def _edge(
    lineages: Sequence[Lineage],
    scores: dict[Lineage, tuple[float, ...]],
    pick: Callable[[list[float]], float],
) -> float:
    found = [scores[lineage][-1] for lineage in lineages if lineage in scores]
    return pick(found) if found else 0.0
