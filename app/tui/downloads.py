"""Models on their way to this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.errors import EngineError

if TYPE_CHECKING:
    from engine.client.models import Model
    from engine.client.pulling import Progress


@dataclass(slots=True)
class Download:
    """One model, being fetched."""

    model: Model
    task: asyncio.Task[None]
    progress: Progress | None = None

    @property
    def words(self) -> str:
        if self.progress is None or not self.progress.total:
            return "asking the hub"
        share = self.progress.done / self.progress.total
        return self.progress.note or f"{share:.0%}"


class Downloads:
    """Fetches models in the background; each can be stopped and goes on later from there.

    Args:
        changed: called at each sign of progress.
        ended: called with a model and what there is to say, for people, once it is here or is not
            to be had.
    """

    def __init__(
        self, changed: Callable[[], None], ended: Callable[[Model, str, bool], None]
    ) -> None:
        self._changed = changed
        self._ended = ended
        self._running: dict[tuple[str, str], Download] = {}
        self._refused: set[tuple[str, str]] = set()
        """What was not fetched since memory is too short for it."""

    @property
    def running(self) -> list[Download]:
        return list(self._running.values())

    def of(self, model: Model) -> Download | None:
        return self._running.get((model.role, model.id))

    def refused(self, model: Model) -> bool:
        """Whether it was not fetched since memory is too short for it, and could be anyway."""
        return (model.role, model.id) in self._refused

    def begin(self, model: Model, *, force: bool = False) -> None:
        """Fetch a model.

        Args:
            force: though memory is too short for it.
        """
        if self.of(model) is None:
            self._refused.discard((model.role, model.id))
            task = asyncio.create_task(self._pull(model, force))
            self._running[model.role, model.id] = Download(model, task)
            self._changed()

    def stop(self, model: Model) -> None:
        if (download := self.of(model)) is not None:
            download.task.cancel()

    async def close(self) -> None:
        """Stop all, and wait for it."""
        tasks = [download.task for download in self.running]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _pull(self, model: Model, force: bool) -> None:
        from engine.client.pulling import Fetched, Progress, pull

        words, fine = "stopped; what came is kept, and it can go on from there", True
        try:
            async with aclosing(pull(model.role, model.id, force=force)) as messages:
                async for message in messages:
                    match message:
                        case Progress():
                            self._running[model.role, model.id].progress = message
                            self._changed()
                        case Fetched():
                            words = "is here"
        except EngineError as error:
            words, fine = f"{error.message} {error.advice}", False
            if error.forcible:
                self._refused.add((model.role, model.id))
                words += " A downloads it anyway."
        finally:
            del self._running[model.role, model.id]
            self._ended(model, words, fine)
