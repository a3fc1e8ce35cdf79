"""What one unified cache costs in attention, against a stream for each path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.bare import Bare
from bench.interleave import Pairs
from engine.models.llama import LlamaWeights

SPARE = 16
"""Cells a path has for the steps that are timed."""
FILL = 510
"""An arbitrary token; what a cache holds does not change what attention over it costs."""


@dataclass(frozen=True)
class Case:
    """`n` paths of `length` tokens, of which they share the first `length - own`."""

    n: int
    length: int
    own: int

    @property
    def cells(self) -> int:
        """Cells of a unified cache; without sharing they would be n x length."""
        return self.length - self.own + self.n * self.own


def compare(
    weights: LlamaWeights, cases: Sequence[Case], steps: int
) -> Iterator[tuple[Case, Pairs]]:
    """For each case seconds of single steps: `ours` unified, `theirs` with a stream a path."""
    for length in sorted({case.length for case in cases}):
        here = [case for case in cases if case.length == length]
        paths = max(case.n for case in here)
        cells = max(case.cells + case.n * SPARE for case in here)
        unified = Bare(weights, cells=cells, sequences=paths)
        streams = Bare(weights, cells=paths * (length + SPARE), sequences=paths, unified=False)
        for cache in (unified, streams):
            cache.prefill([FILL] * length)
        streams.share(range(1, paths))
        for case in here:
            _branch(unified, case)
            for cache in (unified, streams):
                cache.begin(case.n, length, FILL)
                cache.step()
            pairs = Pairs()
            for _ in range(steps):
                pairs.measure(unified.step, streams.step)
            yield case, pairs
            for path in range(case.n):
                unified.cut(path, 0 if path else length)
                streams.cut(path, length)
        unified.close()
        streams.close()


def _branch(cache: Bare, case: Case) -> None:
    """From a cache whose path 0 is written, make paths that share its beginning.

    The last `own` cells are copied, not computed: path 1 first borrows them from path 0 alone.
    """
    fork = case.length - case.own
    others = range(1, case.n)
    cache.share([1], start=fork)
    cache.duplicate(1, others)
    cache.share(others, end=fork)
