"""The interface of a token model: what the scheduler and the verifier drive.

A token model holds weights and a KV cache shaped as a tree. A *path* is a small integer naming
one root-to-tip sequence in it; paths share the cells of a common prefix.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np


@dataclass(frozen=True, slots=True)
class Span:
    """Tokens to append to one path, or to several that have been equal so far.

    When a span has several paths its tokens are computed and stored once for all of them.
    """

    paths: tuple[int, ...]
    tokens: Sequence[int]
    wanted: Sequence[int] = (-1,)
    """Indices into `tokens` after which the logits are wanted."""


class Vocabulary(Protocol):
    """Text to token ids and back."""

    size: int

    def tokenize(self, text: str, *, special: bool = False, bos: bool = False) -> list[int]:
        """Token ids of `text`.

        Args:
            special: read the text of control tokens as those tokens.
            bos: put the model's beginning-of-sequence token first, if it uses one.
        """
        ...

    def piece(self, token: int) -> bytes:
        """The bytes a token stands for in text; empty for control tokens."""
        ...

    def is_end(self, token: int) -> bool:
        """Whether the token ends a generation."""
        ...


class Saved(Protocol):
    """Part of a path's cache in host memory."""

    @property
    def length(self) -> int:
        """Tokens."""
        ...

    @property
    def bytes(self) -> int: ...


class TokenModel(Protocol):
    """Weights plus a tree-shaped KV cache of `capacity` cells."""

    name: str
    trained_context: int
    capacity: int
    """Cells (tokens) the cache holds in all."""
    max_paths: int

    @property
    def vocabulary(self) -> Vocabulary: ...

    @property
    def used(self) -> int:
        """Cells in use; a cell shared by many paths counts once."""
        ...

    def length(self, path: int) -> int:
        """Tokens in a path; 0 for a free one."""
        ...

    def fork(self, source: int, target: int) -> None:
        """Make `target`, which must be free, a copy of `source`. Costs no cells."""
        ...

    def drop(self, path: int) -> None:
        """Free a path; its cells are freed when no other path holds them."""
        ...

    def save(self, path: int, start: int) -> Saved:
        """Copy what the cache holds of a path from position `start` on to host memory."""
        ...

    def restore(self, path: int, saved: Any) -> None:
        """Append what this model saved to a path that is as long as the other was there."""
        ...

    def reset(self) -> None:
        """Free everything."""
        ...

    def forward(self, spans: Sequence[Span], columns: Sequence[int] | None = None) -> np.ndarray:
        """Append the spans and return float32 logits, one row a wanted position, in order.

        Spans that share a path are appended in the order given. The caller has made sure that
        `used` plus the tokens of all spans is at most `capacity`.

        Args:
            columns: token ids to return logits for; None returns the whole vocabulary.

        Returns:
            Shape (wanted positions, vocabulary or columns). Valid until the next call.

        Raises:
            Interrupted: a stop was asked for while computing.
            EngineError: the backend failed.
        """
        ...

    def hidden(self, spans: Sequence[Span]) -> np.ndarray:
        """Append the spans as `forward` does and return hidden states instead of logits.

        Returns:
            float32, shape (wanted positions, width): the last layer's states after the final
            norm, which the output matrix would turn into logits. Valid until the next call.

        Raises:
            Interrupted: a stop was asked for while computing.
            EngineError: the backend failed, or has no hidden states.
        """
        ...


class StatesModel(TokenModel, Protocol):
    """A token model that also tells what goes on inside it, and can take tokens back."""

    layers: int
    """How many layers' states `read` gives: all of the model's, or 1 for the last alone."""
    depth: int
    """How many layers the model has."""
    width: int
    """Values of a hidden state."""

    def read(self, spans: Sequence[Span]) -> tuple[np.ndarray, np.ndarray]:
        """Append the spans as `forward` does, and return logits and hidden states.

        Returns:
            What `forward` would return; and float32 of shape (spans, layers, width): the states
            after each layer, summed over the tokens of the span. The last layer's are those after
            the final norm. Both are valid until the next call.

        Raises:
            Interrupted: a stop was asked for while computing.
            EngineError: the backend failed.
        """
        ...

    def shorten(self, path: int, length: int) -> None:
        """Let go of what a path holds from position `length` on."""
        ...


class Interrupted(Exception):  # noqa: N818 - it is no error
    """A computation ended early because its stop signal was set."""
