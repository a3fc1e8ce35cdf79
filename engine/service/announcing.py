"""Telling of a model that is being loaded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from engine.models.gguf import Header
from engine.protocol.events import Event, Phase


class Listener(Protocol):
    """Whom it is told: a run or a scoring."""

    @property
    def beat(self) -> Callable[[], None]: ...

    def emit(self, event: Event) -> None: ...


def announce(work: Listener, path: Path, name: str = "") -> Callable[[Header, float], None]:
    """Tells of a model being loaded, in steps of a tenth.

    Args:
        name: what to call it; by default what its file does.
    """
    told = -1

    def loading(header: Header, done: float) -> None:
        nonlocal told
        work.beat()
        if int(done * 10) == told:
            return
        told = int(done * 10)
        story = header.text("sapwood.demonstration")
        work.emit(
            Phase(
                name="loading",
                model=name or header.text("general.name") or path.stem,
                note=f"a demonstration model for {story}" if story else "",
                done=round(done, 1),
            )
        )

    return loading
