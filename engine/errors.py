"""The one exception people get to read."""

from __future__ import annotations

from engine.protocol.events import Trouble


class EngineError(Exception):
    """A request cannot go on, for a reason its user can act on.

    Args:
        trouble: the kind of failure, which decides the exit code.
        message: what happened and what it means.
        advice: what to do about it.
        forcible: whether it is tried all the same if that is asked for.
    """

    def __init__(
        self, trouble: Trouble, message: str, advice: str = "", *, forcible: bool = False
    ) -> None:
        super().__init__(trouble, message, advice)  # what it is made of again in another process
        self.trouble = trouble
        self.message = message
        self.advice = advice
        self.forcible = forcible

    def __str__(self) -> str:
        return self.message
