"""Small caches on real weights, and what is computed with them directly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from engine.models.base import Span
from engine.models.llama import CacheType, LlamaModel, LlamaWeights
from engine.models.stop import StopSignal


@contextmanager
def opened(
    weights: LlamaWeights,
    capacity: int = 512,
    paths: int = 8,
    outputs: int = 8,
    batch: int = 512,
    stop: StopSignal | None = None,
    cache: CacheType = "f16",
    precise: bool = False,
) -> Iterator[LlamaModel]:
    """A cache with one thread, since other work may run on the same machine."""
    model = LlamaModel(
        weights,
        capacity=capacity,
        paths=paths,
        outputs=outputs,
        stop=stop or StopSignal(),
        batch=batch,
        threads=1,
        cache=cache,
        precise=precise,
    )
    try:
        yield model
    finally:
        model.close()


def append(model: LlamaModel, path: int, tokens: Sequence[int]) -> np.ndarray:
    """Logits after the last of `tokens`."""
    return model.forward([Span((path,), tokens)])[0].copy()


def greedy(model: LlamaModel, path: int, logits: np.ndarray, count: int) -> list[int]:
    """The likeliest next `count` tokens."""
    tokens: list[int] = []
    for _ in range(count):
        tokens.append(int(logits.argmax()))
        logits = append(model, path, tokens[-1:])
    return tokens
