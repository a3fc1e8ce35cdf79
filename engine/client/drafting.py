"""How drafts of one model for another are accepted."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from engine import catalogue
from engine.semantic.shipped import shipped_probe

Acceptance = Literal["semantic", "tokens"]


def acceptance(draft: str, generator: str) -> Acceptance:
    """By meaning where there are predictors for the two, else by tokens, which needs none.

    Args:
        draft: catalogue id or path, as `generator`.

    Raises:
        EngineError: there is no such model.
    """
    small = catalogue.locate("generator", draft)
    large = catalogue.locate("generator", generator)
    if isinstance(small, Path) and isinstance(large, Path) and shipped_probe(small, large):
        return "semantic"
    return "tokens"
