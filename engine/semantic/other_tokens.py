"""What is said of a draft model whose tokens are not the generator's."""

from __future__ import annotations

from engine.errors import EngineError
from engine.protocol.events import Trouble


def other_tokens(draft: int, target: int) -> EngineError:
    """The refusal, by the numbers of their tokens."""
    return EngineError(
        Trouble.USAGE,
        f"The draft model has other tokens than the generator ({draft:,} and {target:,}): "
        "it cannot write for it.",
        "Choose a smaller model of the same family with --draft.",
    )
