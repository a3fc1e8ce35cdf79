"""The count of cells in use agrees with what a cache really holds."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from engine.errors import EngineError
from engine.models.base import Span
from engine.models.cells import CellCount
from engine.models.llama import LlamaWeights
from tests.engine.real_models import opened

PATHS = st.integers(0, 5)


class Counting(RuleBasedStateMachine):
    """Against a model where every path is the list of its cells, each with a number of its own."""

    @initialize()
    def begin(self) -> None:
        self.counted = CellCount()
        self.paths: dict[int, list[int]] = {path: [] for path in range(6)}
        self.next = 0

    @rule(path=PATHS, count=st.integers(1, 5))
    def append(self, path: int, count: int) -> None:
        self._append((path,), count)

    @rule(source=PATHS, others=st.sets(PATHS, min_size=1), count=st.integers(1, 5))
    def append_to_equal_paths(self, source: int, others: set[int], count: int) -> None:
        equal = [path for path in sorted(others) if self.paths[path] == self.paths[source]]
        if equal:
            self._append(tuple(equal), count)

    @rule(source=PATHS, copy=PATHS)
    def fork(self, source: int, copy: int) -> None:
        if not self.paths[copy] and source != copy:
            self.paths[copy] = list(self.paths[source])
            self.counted.fork(source, copy)

    @rule(path=PATHS)
    def drop(self, path: int) -> None:
        self.paths[path] = []
        self.counted.drop(path)

    @rule(path=PATHS, length=st.integers(0, 12))
    def shorten(self, path: int, length: int) -> None:
        before = self.counted.used
        del self.paths[path][length:]
        assert self.counted.shorten(path, length) == before - self.counted.used

    @invariant()
    def agrees(self) -> None:
        assert self.counted.used == len({cell for cells in self.paths.values() for cell in cells})
        for path, cells in self.paths.items():
            assert self.counted.length(path) == len(cells)

    @invariant()
    def can_be_filled_again(self) -> None:
        again: dict[int, list[int]] = {path: [] for path in range(6)}
        cells = 0
        for paths, tokens in self.counted.runs():
            cells += len(tokens)
            for path in paths:
                again[path] += tokens
        assert again == self.paths
        assert cells == self.counted.used

    def _append(self, paths: tuple[int, ...], count: int) -> None:
        cells = list(range(self.next, self.next + count))
        self.next += count
        for path in paths:
            self.paths[path] += cells
        self.counted.append(paths, cells)


TestCounting = Counting.TestCase
TestCounting.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


def test_a_cache_can_be_filled_to_the_last_counted_cell_and_no_further(
    seedling_generator: LlamaWeights,
) -> None:
    with opened(seedling_generator, capacity=256, paths=8) as model:
        model.forward([Span((0,), range(100), ())])
        for path in range(1, 5):
            model.fork(0, path)
            model.forward([Span((path,), range(30), ())])
        model.drop(0)
        model.drop(1)
        assert model.used == 190
        model.forward([Span((2,), range(66), ())])
        assert model.used == model.capacity == 256
        with pytest.raises(EngineError):
            model.forward([Span((3,), [1])])
        model.reset()
        assert model.used == 0
        model.forward([Span((3,), range(256), ())])
        assert model.used == 256


def test_cells_that_were_freed_can_be_used_again(seedling_generator: LlamaWeights) -> None:
    with opened(seedling_generator, capacity=256, paths=4) as model:
        model.forward([Span((0, 1), range(60), ())])
        for _ in range(6):
            model.fork(0, 2)
            model.forward([Span((2,), range(model.capacity - model.used), ())])
            assert model.used == model.capacity
            model.drop(2)
        model.drop(0)
        assert model.used == 60
        model.drop(1)
        assert model.used == 0
