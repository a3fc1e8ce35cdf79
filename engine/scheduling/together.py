"""Several searches on the same models, all of them in each pass.

Nothing that one search draws depends on another, so each finds what it would find alone. While
there are several, rows and cells go to their own work: nobody drafts.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from engine.models.base import Span, TokenModel
from engine.models.kv_tree import KvTree
from engine.scheduling.scheduler import Batch, Scheduler


class Together:
    """Advances searches that share a generator and its cache.

    Args:
        alone: told of the only search, or of None while there are several or none.
    """

    def __init__(
        self,
        generator: TokenModel,
        cache: KvTree,
        *,
        alone: Callable[[Scheduler | None], None] = lambda search: None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._generator = generator
        self._cache = cache
        self._alone = alone
        self._clock = clock
        self._searches: list[Scheduler] = []
        """In the order in which they take rows and cells; it turns with every pass."""
        self._served: set[int] = set()
        """Identities of searches that a pass has served which another had asked for."""
        self._failed: dict[int, Exception] = {}

    def add(self, search: Scheduler) -> None:
        self._searches.append(search)
        self._speculate()

    def remove(self, search: Scheduler) -> None:
        """End a search, whether it is done or not; nothing of it stays in the cache."""
        self._searches.remove(search)
        self._served.discard(id(search))
        self._failed.pop(id(search), None)
        search.close()
        self._speculate()

    def advance(self, search: Scheduler) -> None:
        """Serve `search` once more, and with it all that were not served since it last was.

        Raises:
            Interrupted, EngineError: as `TokenModel.forward`.
        """
        if id(search) not in self._served:
            self._pass()
        self._served.discard(id(search))
        if error := self._failed.pop(id(search), None):
            raise error

    def _pass(self) -> None:
        batches: list[tuple[Scheduler, Batch]] = []
        for search in self._waiting():
            if search.apart:
                self._each(search, search.advance)
            elif (batch := self._each(search, search.prepare)) is not None:
                batches.append((search, batch))
                self._cache.reserved += batch.tokens
        self._cache.reserved = 0
        self._decode(batches)
        for search in self._waiting():
            self._each(search, search.settle)
            self._served.add(id(search))
        self._searches.append(self._searches.pop(0))

    def _waiting(self) -> list[Scheduler]:
        return [
            search
            for search in self._searches
            if id(search) not in self._served and id(search) not in self._failed
        ]

    def _decode(self, batches: list[tuple[Scheduler, Batch]]) -> None:
        spans: list[Span] = [span for _, batch in batches for span in batch.spans]
        if not spans:
            return
        before = self._clock()
        try:
            logits = self._generator.forward(spans)
        except Exception as error:
            self._failed.update((id(search), error) for search, _ in batches)
            return
        seconds = self._clock() - before
        first = 0
        for search, batch in batches:
            rows = logits[first : first + len(batch.spans)]
            first += len(batch.spans)
            self._each(
                search, lambda s=search, b=batch, r=rows: s.accept(b, r, seconds, len(spans))
            )

    def _each(self, search: Scheduler, work: Callable[[], Batch | None]) -> Batch | None:
        """Let one search work; what goes wrong is its own affair."""
        try:
            return work()
        except Exception as error:
            self._failed[id(search)] = error
            return None

    def _speculate(self) -> None:
        single = self._searches[0] if len(self._searches) == 1 else None
        for search in self._searches:
            search.speculate(search is single)
        self._alone(single)
