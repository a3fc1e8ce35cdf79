"""How drafts of one model for another are accepted."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from engine import catalogue
from engine.models.gguf import read_header
from engine.semantic.other_tokens import other_tokens
from engine.semantic.shipped import shipped_probe

Acceptance = Literal["semantic", "tokens"]


def acceptance(draft: str, generator: str) -> Acceptance:
    """By meaning where there are predictors for the two, else by tokens, which needs none.

    Args:
        draft: catalogue id or path, as `generator`.

    Raises:
        EngineError: there is no such model, or their tokens are not the same.
    """
    small = catalogue.locate("generator", draft)
    large = catalogue.locate("generator", generator)
    if not (isinstance(small, Path) and isinstance(large, Path)):
        return "tokens"
    if small.is_file() and large.is_file():
        _compare_tokens(small, large)
    return "semantic" if shipped_probe(small, large) else "tokens"


def _compare_tokens(small: Path, large: Path) -> None:
    """By their number alone, which the headers tell; each token is compared once both are open."""
    first, second = (read_header(path).number("tokenizer.ggml.tokens") for path in (small, large))
    if first != second:
        raise other_tokens(first, second)
