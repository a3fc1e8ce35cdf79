"""A verifier on llama.cpp, from its files as they are found."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine import catalogue
from engine.models.llama import LlamaWeights
from engine.verify.formats import bind
from engine.verify.heads import head_of
from engine.verify.prm import Prm
from tests.engine.real_models import opened


@contextmanager
def verifier(path: Path, problem: str, *, precise: bool = False) -> Iterator[Prm]:
    """The verifier in a file, which says its format; `precise` as `sapwood score` opens it."""
    weights = LlamaWeights(path)
    format = catalogue.load().format(weights.header.text("sapwood.prm.format"))
    head = head_of(path) if format.head else None
    try:
        with opened(weights, capacity=1024, outputs=64, precise=precise) as model:
            yield Prm(model, bind(format, weights.vocabulary, weights.template, head), problem)
    finally:
        weights.close()
