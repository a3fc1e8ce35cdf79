"""The engine writing independent paths of a fixed length, and where its time goes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import llama_cpp

from bench.spent import Spent
from engine.models.llama import LlamaModel, LlamaWeights
from engine.models.llama_vocabulary import LlamaVocabulary
from engine.models.sampling import Draws, Sampler
from engine.models.stop import StopSignal
from engine.protocol import AnyEvent, SolveRequest, encode
from engine.scheduling.past import Past
from engine.scheduling.scheduler import Scheduler
from engine.scheduling.settings import Limits, Mechanisms, Mode
from engine.search.policy import Branch, Candidate, Decision, Group, Lineage
from engine.service.run import Run


class Endless(LlamaVocabulary):
    """A vocabulary whose end of text ends nothing, so that batches stay full."""

    def __init__(self, vocabulary: LlamaVocabulary) -> None:
        super().__init__(vocabulary._pointer)

    def is_end(self, token: int) -> bool:
        return super().is_end(token) and False


@dataclass(frozen=True)
class AtOnce:
    """A policy of `n` paths that are written to their ends side by side."""

    n: int
    guided: bool = False

    def start(self) -> tuple[Group, ...]:
        return (Group((), 0, tuple(Branch((), i) for i in range(self.n)), whole=True),)

    def decide(
        self, group: Group, candidates: Sequence[Candidate], completed: Sequence[Candidate]
    ) -> Decision:
        return Decision(completed=tuple(c.lineage for c in candidates))

    def follow(self, group: Group, lineage: Lineage) -> None:
        return None

    def outlook(
        self, group: Group, scored: Sequence[Candidate], completed: Sequence[Candidate]
    ) -> None:
        return None

    def final(self, completed: Sequence[Candidate]) -> tuple[Candidate, ...]:
        return tuple(completed)


class Writer:
    """The engine's scheduler on a model of its own, sampling and events included.

    Equal paths are not written together here, so that a step always has `n` rows.
    """

    def __init__(self, weights: LlamaWeights, *, cells: int, paths: int) -> None:
        self._model = LlamaModel(
            weights, capacity=cells, paths=paths, outputs=paths, stop=StopSignal()
        )
        self._model.vocabulary = Endless(weights.vocabulary)

    def begin(self, n: int, prompt: Sequence[int], length: int, seed: int) -> None:
        """Start `n` paths of `length` tokens; the first token of each is written here."""
        self._model.reset()
        run = Run("bench", SolveRequest(problem=""), send=_send)
        scheduler = Scheduler(
            self._model,
            None,
            AtOnce(n),
            Sampler(temperature=0.8),
            prompt=prompt,
            seed=seed,
            limits=Limits(length, len(prompt) + length),
            emit=lambda event: run.emit(event),  # looked up each time, for `profile`
            past=Past(),
            mode=Mode(Mechanisms(deduplicate=False, drafts=False)),
        )
        self._passes = scheduler.run()
        self.step()

    def step(self) -> None:
        """One token on every path."""
        next(self._passes)

    def close(self) -> None:
        self._model.close()


def _send(event: AnyEvent) -> None:
    """What the worker does with an event, but for writing it to its pipe."""
    encode(event)


HOST_PARTS = ("batch", "sampling", "events", "rest")


def profile(step: Callable[[], None], steps: int) -> dict[str, float]:
    """Microseconds of processor time a step spends outside `llama_decode`, by part.

    `batch` fills llama.cpp's batch and fetches the logits, `rest` is the scheduler's own work.
    """
    spent = Spent()
    functions = (
        (llama_cpp, "llama_decode", "decode"),
        (LlamaModel, "forward", "batch"),
        (Sampler, "draw", "sampling"),
        (Draws, "uniform", "sampling"),
        (Run, "emit", "events"),
    )
    with spent.watching(functions), spent.within("rest"):
        for _ in range(steps):
            step()
    return {part: spent.of(part) / steps * 1e6 for part in HOST_PARTS}
