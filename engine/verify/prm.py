"""Incremental scoring with a token-logit PRM: its own KV tree, fed only what is new.

A step's score depends on nothing after its marker, so a path is scored by appending the new step
to the cache of its parent. Steps with equal beginnings share their cells: a batch is laid out as a
tree of tokens, and no token of it is computed twice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.errors import EngineError
from engine.models.base import Span, TokenModel
from engine.models.kv_tree import KvTree, Stem
from engine.protocol.events import Trouble
from engine.verify.formats import BoundFormat


@dataclass(eq=False, slots=True)
class Judged:
    """A step in the verifier's tree."""

    parent: Judged | None
    steps: tuple[str, ...]
    """The path's steps up to this one."""
    stem: Stem
    score: float | None = None
    children: dict[str, Judged] = field(default_factory=dict)

    def scores_since(self, ancestor: Judged) -> tuple[float, ...]:
        """Scores of the steps after `ancestor`, down to this one."""
        scores: list[float] = []
        node: Judged | None = self
        while node is not None and node is not ancestor:
            assert node.score is not None
            scores.append(node.score)
            node = node.parent
        return tuple(reversed(scores))


@dataclass(eq=False, slots=True)
class _Leaf:
    """A new path to be computed: tokens after the nearest computed stem."""

    judged: Judged
    base: Stem | None
    path: int
    tokens: list[int]
    marks: dict[int, Judged]
    """Index of a step's last token in `tokens` to that step."""


class Prm:
    """Scores the steps of one problem's solutions. Equal steps of one parent are scored once."""

    def __init__(self, model: TokenModel, format: BoundFormat, problem: str) -> None:
        self.model = model
        self._format = format
        self._problem = problem
        self._tree = KvTree(model)
        self.root = Judged(None, (), Stem(None, tuple(format.opening(problem))))
        self.fed_tokens = 0
        """Tokens computed so far."""

    def score(self, requests: Sequence[tuple[Judged, Sequence[str]]]) -> list[Judged]:
        """Score steps.

        Args:
            requests: a step of the tree and the new steps that follow it, in order.

        Returns:
            For each request the last of its steps, scored; the given step if there are none.
        """
        if self.root.stem.tokens and self._tree.nearest(self.root.stem) is None:
            self._compute_root()
        fresh: list[Judged] = []
        results = [self._grow(parent, steps, fresh) for parent, steps in requests]
        inner = {id(judged.parent) for judged in fresh}
        tips = [judged for judged in fresh if id(judged) not in inner]
        while tips:
            tips = tips[self._compute(tips) :]
        return results

    def adopt(self, parent: Judged, steps: Sequence[str], scores: Sequence[float]) -> Judged:
        """Enter steps whose scores are already known; computed only if something follows."""
        fresh: list[Judged] = []
        judged = self._grow(parent, steps, fresh)
        for step, score in zip(fresh, scores[len(scores) - len(fresh) :], strict=True):
            step.score = score
        return judged

    def release(self, judged: Judged) -> None:
        """Nothing will follow this step."""
        self._tree.forget(judged.stem)

    def unique_tokens(self) -> int:
        """Tokens of the tree, counting equal beginnings once: the least that had to be fed."""
        count = 0
        pending = [self.root]
        while pending:
            judged = pending.pop()
            count += len(judged.stem.tokens) if judged is self.root and judged.children else 0
            branches: dict = {}
            for child in judged.children.values():
                level = branches
                for token in child.stem.tokens:
                    if token not in level:
                        level[token] = {}
                        count += 1
                    level = level[token]
            pending += judged.children.values()
        return count

    def _grow(self, parent: Judged, steps: Sequence[str], fresh: list[Judged]) -> Judged:
        for step in steps:
            child = parent.children.get(step)
            if child is None:
                path = (*parent.steps, step)
                tokens = self._format.step(self._problem, path, parent.stem.tail(0))
                child = Judged(parent, path, Stem(parent.stem, tuple(tokens)))
                parent.children[step] = child
                fresh.append(child)
            parent = child
        return parent

    def _compute_root(self) -> None:
        """Keep the text before the first step in the cache, for every path to start from."""
        claimed = self._tree.claim(self.root.stem)
        if claimed is None:
            return
        path, tokens = claimed
        if self._tree.make_room(len(tokens)):
            self.model.forward([Span((path,), tokens, ())])
            self.fed_tokens += len(tokens)
            self._tree.settle(path, self.root.stem)
        else:
            self._tree.drop(path)

    def _compute(self, tips: Sequence[Judged]) -> int:
        """Compute as many of the tips as fit at once; returns how many."""
        leaves: list[_Leaf] = []
        groups: dict[int, list[_Leaf]] = defaultdict(list)
        cells = 0
        for judged in tips:
            leaf = self._prepare(judged)
            if leaf is None:
                break
            cells += len(leaf.tokens)
            if not self._tree.make_room(cells):
                self._tree.drop(leaf.path)
                break
            leaves.append(leaf)
            groups[id(leaf.base)].append(leaf)
        if not leaves:
            raise EngineError(
                Trouble.USAGE,
                f"A solution of {tips[0].stem.end:,} tokens is longer than the verifier's cache "
                f"of {self.model.capacity:,}.",
                "Use a larger --context, or a smaller --max-steps.",
            )
        spans: list[Span] = []
        marked: list[Judged] = []
        for group in groups.values():
            for span, steps in _share(group, 0):
                spans.append(span)
                marked += steps
        self.fed_tokens += sum(len(span.tokens) for span in spans)
        pair = self.model.forward(spans, (self._format.good, self._format.bad))
        for judged, score in zip(marked, _softmax_first(pair), strict=True):
            judged.score = float(score)
        for leaf in leaves:
            self._tree.settle(leaf.path, leaf.judged.stem)
        return len(leaves)

    def _prepare(self, judged: Judged) -> _Leaf | None:
        base = self._tree.nearest(judged.stem)
        claimed = self._tree.claim(judged.stem)
        if claimed is None:
            return None
        path, tokens = claimed
        start = judged.stem.end - len(tokens)
        marks: dict[int, Judged] = {}
        step: Judged | None = judged
        while step is not None and step.parent is not None and step.stem.end > start:
            if step.score is None:
                marks[step.stem.end - 1 - start] = step
            step = step.parent
        return _Leaf(judged, base, path, tokens, marks)


def _share(leaves: list[_Leaf], start: int) -> Iterator[tuple[Span, list[Judged]]]:
    """Lay out paths that are equal up to `start` as spans, common beginnings first."""
    first = leaves[0].tokens
    end = min(len(leaf.tokens) for leaf in leaves)
    for index in range(start, end):
        if any(leaf.tokens[index] != first[index] for leaf in leaves):
            end = index
            break
    if end > start:
        marks = [index for index in sorted(leaves[0].marks) if start <= index < end]
        yield (
            Span(
                tuple(leaf.path for leaf in leaves),
                first[start:end],
                [index - start for index in marks],
            ),
            [leaves[0].marks[index] for index in marks],
        )
    branches: dict[int, list[_Leaf]] = defaultdict(list)
    for leaf in leaves:
        if len(leaf.tokens) > end:
            branches[leaf.tokens[end]].append(leaf)
    for branch in branches.values():
        yield from _share(branch, end)


def _softmax_first(pair: np.ndarray) -> np.ndarray:
    """Softmax over two columns, the first one's share."""
    difference = pair[:, 1].astype(np.float64) - pair[:, 0]
    return 1.0 / (1.0 + np.exp(np.clip(difference, -700, 700)))
