"""What runs that use the same models have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from engine.memory.devices import Kind
from engine.models.host_copies import HostCopies
from engine.models.kv_tree import KvTree, Stem
from engine.models.stop import StopSignal
from engine.scheduling.scheduler import Scheduler
from engine.scheduling.together import Together
from engine.service.model_pool import Opened
from engine.service.planning import Ask

_COPIES = 1 << 30
"""Bytes of RAM for what leaves the cache of a GPU."""


class Shared:
    """Models, their caches, and the searches on them.

    Args:
        ask: what the models were opened for.
        watch: makes the models give up computing when a signal is set.
        copies: whether what leaves the cache of a GPU waits in RAM.
    """

    def __init__(
        self,
        ask: Ask,
        models: Opened,
        watch: Callable[[StopSignal], None],
        *,
        copies: bool,
    ) -> None:
        self.models = models
        self.cache = KvTree(models.generator, _copies(models) if copies else None)
        self.verifier_cache = KvTree(models.verifier) if models.verifier is not None else None
        self.draft_cache = KvTree(models.draft) if models.draft is not None else None
        self.together = Together(models.generator, self.cache, alone=self._alone)
        self._ask = ask
        self._watch = watch
        self._stops: dict[int, StopSignal] = {}

    @property
    def empty(self) -> bool:
        return not self._stops

    def suits(self, ask: Ask) -> bool:
        """Whether a run can use the models as they are open."""
        mine = self._ask
        return (
            ask.generator == mine.generator
            and ask.verifier in (None, mine.verifier)
            and (ask.draft, ask.all_layers) == (mine.draft, mine.all_layers)
            and (ask.limit, ask.force, ask.job.cache) == (mine.limit, mine.force, mine.job.cache)
            and ask.job.context <= mine.job.context
            and ask.job.n <= mine.job.n
        )

    @contextmanager
    def joined(self, search: Scheduler, stop: StopSignal) -> Iterator[None]:
        """Let a search take part meanwhile; `stop` is the signal of its run."""
        self._stops[id(search)] = stop
        self.together.add(search)
        try:
            yield
        finally:
            del self._stops[id(search)]
            self.together.remove(search)

    def _alone(self, search: Scheduler | None) -> None:
        # A pass that serves several is not given up because one of them is stopped.
        several = StopSignal(self._beat)
        self._watch(self._stops[id(search)] if search is not None else several)

    def _beat(self) -> None:
        for stop in self._stops.values():
            stop.beat()


def _copies(models: Opened) -> HostCopies[Stem] | None:
    """None where the cache is in the host's memory itself."""
    on_gpu = models.planned.device.kind is Kind.GPU
    return HostCopies(models.generator, _COPIES) if on_gpu else None
