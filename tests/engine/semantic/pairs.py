"""A draft and a target of one vocabulary, and searches on them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeVar

from engine import search
from engine.models.chat import ChatTemplate
from engine.models.kv_tree import KvTree
from engine.models.llama import LlamaModel, LlamaWeights
from engine.models.sampling import Sampler
from engine.models.stop import StopSignal
from engine.protocol import events
from engine.scheduling.paired import Drafter
from engine.scheduling.past import Past
from engine.scheduling.scheduler import Scheduler
from engine.scheduling.settings import EXACT, Counts, Limits, Mode
from engine.search.policy import Candidate
from engine.semantic.judges import Judging

E = TypeVar("E", bound=events.Event)
PROBLEM = "Tom has 14 apples. He finds 5 more. How many apples does Tom have now?"
PAIRED = Mode(replace(EXACT.mechanisms, drafts=False, deduplicate=False, early_scores=False))


@dataclass
class Found:
    """What came of a search."""

    completed: list[Candidate] = field(default_factory=list)
    events: list[events.Event] = field(default_factory=list)
    counts: Counts = field(default_factory=Counts)

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]


@contextmanager
def opened(
    weights: LlamaWeights, *, capacity: int, paths: int, all_layers: bool = False
) -> Iterator[LlamaModel]:
    model = LlamaModel(
        weights,
        capacity=capacity,
        paths=paths,
        outputs=64,
        stop=StopSignal(),
        threads=1,
        all_layers=all_layers,
    )
    with closing(model):
        yield model


def search_paired(
    target: LlamaModel,
    draft: LlamaModel,
    template: ChatTemplate,
    judging: Judging | None,
    *,
    policy: str = "majority",
    n: int = 4,
    seed: int = 0,
    step: int = 40,
    context: int = 256,
    temperature: float = 0.8,
    max_steps: int = 8,
    problem: str = PROBLEM,
) -> Found:
    """Search with drafts, or by the target alone; nothing is left in the caches."""
    found = Found()
    drafter = None if judging is None else Drafter(draft, KvTree(draft), judging)
    scheduler = Scheduler(
        target,
        None,
        search.build(policy, n=n, max_steps=max_steps, step_tokens=step),
        Sampler(temperature),
        prompt=template.encode(target.vocabulary, [{"role": "user", "content": problem}]),
        seed=seed,
        limits=Limits(step, context),
        emit=found.events.append,
        past=Past(),
        mode=PAIRED,
        drafter=drafter,
    )
    for count, _ in enumerate(scheduler.run()):
        assert count < 5000, "the search does not end"
        assert target.used <= target.capacity
        assert draft.used <= draft.capacity
    found.completed, found.counts = scheduler.completed, scheduler.counts
    scheduler.close()
    assert target.used == draft.used == 0
    return found
