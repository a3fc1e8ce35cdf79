"""Incremental scoring with a PRM: its own KV tree, fed only what is new.

A step's score depends on nothing after its marker, so a path is scored by appending the new step
to the cache of its parent. Where the end of a step would become another token with what follows,
it is read on a path of its own, and the next step goes on before it. Steps with equal beginnings
share their cells: a batch is laid out as a tree of tokens, and no token of it is computed twice.
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
    place: Stem
    """Its score is read at the end of this: of `stem`, or of a tail that nothing is built on."""
    score: float | None = None
    users: int = 0
    """Nodes of the search that stand on this step; equal siblings share it."""
    children: dict[str, Judged] = field(default_factory=dict)

    @property
    def has_tail(self) -> bool:
        return self.place is not self.stem

    def scores_since(self, ancestor: Judged) -> tuple[float, ...]:
        """Scores of the steps after `ancestor`, down to this one."""
        scores: list[float] = []
        node: Judged | None = self
        while node is not None and node is not ancestor:
            assert node.score is not None
            scores.append(node.score)
            node = node.parent
        return tuple(reversed(scores))


@dataclass(frozen=True, slots=True)
class _Goal:
    """A path to be computed as far as `end`, which is the stem or the place of a step."""

    judged: Judged
    end: Stem

    @property
    def kept(self) -> bool:
        """Later steps go on from here."""
        return self.end is self.judged.stem


@dataclass(eq=False, slots=True)
class _Leaf:
    """A new path to be computed: tokens after the nearest computed stem."""

    goal: _Goal
    base: Stem | None
    path: int
    tokens: list[int]
    marks: dict[int, Judged]
    """Index of a step's last token in `tokens` to that step."""


class Prm:
    """Scores the steps of one problem's solutions. Equal steps of one parent are scored once.

    Args:
        whole_paths: keep nothing in the cache and share nothing: each path is read from its
            beginning whenever it is scored, as by a verifier without one.
        cache: the model's cache, if other searches use it too.
        all_memory: whether there is no memory for a larger cache.
    """

    def __init__(
        self,
        model: TokenModel,
        format: BoundFormat,
        problem: str,
        *,
        whole_paths: bool = False,
        cache: KvTree | None = None,
        all_memory: bool = False,
    ) -> None:
        self.model = model
        self._format = format
        self._problem = problem
        self._whole_paths = whole_paths
        self._all_memory = all_memory
        self._tree = cache or KvTree(model)
        opening = Stem(None, tuple(format.opening(problem)))
        self.root = Judged(None, (), opening, opening, users=1)
        self.fed_tokens = 0
        """Tokens computed so far."""

    def score(self, requests: Sequence[tuple[Judged, Sequence[str]]]) -> list[Judged]:
        """Score steps.

        Args:
            requests: a step of the tree and the new steps that follow it, in order.

        Returns:
            For each request the last of its steps, scored; the given step if there are none.
            Each is kept at hand until it was released as often as it was returned.
        """
        fresh: list[Judged] = []
        results = [self._grow(parent, steps, fresh) for parent, steps in requests]
        if self._whole_paths:
            self._read_again(fresh, results)
            return results
        inner = {id(judged.parent) for judged in fresh}
        goals = [_Goal(judged, judged.stem) for judged in fresh if id(judged) not in inner]
        goals += [_Goal(judged, judged.place) for judged in fresh if judged.has_tail]
        while goals:
            goals = goals[self._compute(goals) :]
        for judged in results:
            judged.users += 1
        return results

    def holds(self, parent: Judged, steps: Sequence[str]) -> bool:
        """Whether the cache is long enough for a path that goes on from `parent` by these steps."""
        path, tokens = parent.steps, parent.stem.tail(0)
        longest = 0
        for step in steps:
            path = (*path, step)
            found = self._format.step(self._problem, path, tokens)
            tokens = [*tokens, *found.tokens]
            longest = max(longest, len(tokens) + len(found.tail))
        return longest <= self.model.capacity

    def adopt(self, parent: Judged, steps: Sequence[str], scores: Sequence[float]) -> Judged:
        """Enter steps whose scores are already known; computed only if something follows."""
        fresh: list[Judged] = []
        judged = self._grow(parent, steps, fresh)
        for step, score in zip(fresh, scores[len(scores) - len(fresh) :], strict=True):
            step.score = score
        judged.users += 1
        return judged

    def release(self, judged: Judged) -> None:
        """One who was given this step will not go on from it."""
        judged.users -= 1
        if judged.users == 0:
            self._tree.forget(judged.stem)

    def close(self) -> None:
        """Leave nothing in the cache."""
        self._tree.forget_below(self.root.stem)

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
                for token in child.place.tail(judged.stem.end):
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
                found = self._format.step(self._problem, path, parent.stem.tail(0))
                stem = Stem(parent.stem, tuple(found.tokens))
                place = Stem(stem, tuple(found.tail)) if found.tail else stem
                child = Judged(parent, path, stem, place)
                parent.children[step] = child
                fresh.append(child)
            parent = child
        return parent

    def _compute(self, goals: Sequence[_Goal]) -> int:
        """Compute as many of the goals as fit at once; returns how many."""
        if any(self._tree.nearest(goal.end) is None for goal in goals):
            self._compute_opening()
        leaves: list[_Leaf] = []
        groups: dict[int, list[_Leaf]] = defaultdict(list)
        counted: set[tuple[int, int]] = set()
        cells = 0
        for goal in goals:
            # For a tail nothing is given up: later there are paths again.
            leaf = self._prepare(goal, evict=goal.kept or not leaves)
            if leaf is None:
                break
            cells += _new_cells(leaf, counted)
            if not self._tree.make_room(cells):
                self._tree.drop(leaf.path)
                break
            leaves.append(leaf)
            groups[id(leaf.base)].append(leaf)
        if not leaves:
            raise self._too_long(goals[0])
        spans: list[Span] = []
        marked: list[list[Judged]] = []
        for group in groups.values():
            for span, steps in _share(group, 0):
                spans.append(span)
                marked += steps
        for steps, score in zip(marked, self._scores(spans), strict=True):
            for judged in steps:
                judged.score = float(score)
        for leaf in leaves:
            if leaf.goal.kept:
                self._tree.settle(leaf.path, leaf.goal.end)
            else:
                self._tree.drop(leaf.path)
        return len(leaves)

    def _read_again(self, fresh: Sequence[Judged], paths: Sequence[Judged]) -> None:
        """Compute every path from its beginning, whatever was computed of it before."""
        last = {id(judged) for judged in paths}
        between = [judged for judged in fresh if judged.has_tail and id(judged) not in last]
        left = [_Goal(judged, judged.place) for judged in (*between, *paths)]
        while left:
            leaves: list[_Leaf] = []
            cells = 0
            for goal in left:
                cells += goal.end.end
                if leaves and not self._tree.make_room(cells):
                    break
                if cells > self.model.capacity or (leaf := self._prepare(goal)) is None:
                    break
                leaves.append(leaf)
            if not leaves:
                raise self._too_long(left[0])
            spans = [Span((leaf.path,), leaf.tokens, sorted(leaf.marks)) for leaf in leaves]
            marked = [leaf.marks[index] for leaf in leaves for index in sorted(leaf.marks)]
            for judged, score in zip(marked, self._scores(spans), strict=True):
                judged.score = float(score)
            for leaf in leaves:
                self._tree.drop(leaf.path)
            left = left[len(leaves) :]

    def _too_long(self, goal: _Goal) -> EngineError:
        length, trained = goal.end.end, self.model.trained_context
        if trained and length > trained:  # no cache was ever made larger than that
            return EngineError(
                Trouble.USAGE,
                f"A solution of {length:,} tokens is too long for the verifier, which reads no "
                f"more than {trained:,} tokens.",
                "Use shorter solutions, or another verifier.",
            )
        message = (
            f"A solution of {length:,} tokens is longer than the verifier's cache of "
            f"{self.model.capacity:,}"
        )
        if self._all_memory:
            return EngineError(
                Trouble.USAGE,
                f"{message}, and there is no memory for a larger one.",
                "Free some memory, or use shorter solutions.",
            )
        return EngineError(
            Trouble.USAGE, f"{message}.", "Use a larger --context, or shorter solutions."
        )

    def _compute_opening(self) -> None:
        """Have the problem at hand for paths that are scored at other times to start from."""
        stem = self.root.stem
        if not stem.tokens or not self._tree.make_room(len(stem.tokens)):
            return
        claimed = self._tree.claim(stem)
        if claimed is not None:
            path, tokens = claimed
            self._scores([Span((path,), tokens, ())])
            self._tree.settle(path, stem)

    def _scores(self, spans: Sequence[Span]) -> np.ndarray:
        if not spans:
            return np.empty(0)
        self.fed_tokens += sum(len(span.tokens) for span in spans)
        return self._format.scores(self.model, spans)

    def _prepare(self, goal: _Goal, *, evict: bool = True) -> _Leaf | None:
        base = self._tree.nearest(goal.end)
        claimed = self._tree.claim(goal.end, evict=evict)
        if claimed is None:
            return None
        path, tokens = claimed
        start = goal.end.end - len(tokens)
        marks: dict[int, Judged] = {}
        step: Judged | None = goal.judged
        end = goal.end
        while step is not None and step.parent is not None and end.end > start:
            if step.place is end and (step.score is None or self._whole_paths):
                marks[end.end - 1 - start] = step
            step = step.parent
            end = step.stem
        return _Leaf(goal, base, path, tokens, marks)


def _new_cells(leaf: _Leaf, counted: set[tuple[int, int]]) -> int:
    """Cells that a path takes beyond those of the stems already `counted` for others."""
    cells = 0
    start = leaf.goal.end.end - len(leaf.tokens)
    stem: Stem | None = leaf.goal.end
    while stem is not None and stem.end > start:
        if (id(leaf.base), id(stem)) not in counted:
            counted.add((id(leaf.base), id(stem)))
            cells += stem.end - max(stem.start, start)
        stem = stem.parent
    return cells


def _share(leaves: list[_Leaf], start: int) -> Iterator[tuple[Span, list[list[Judged]]]]:
    """Lay out paths that are equal up to `start` as spans, common beginnings first.

    With each span come the steps to be scored at its wanted positions. Steps that differ as texts
    may be equal as tokens ("Step 1:" is added where it is missing).
    """
    first = leaves[0].tokens
    end = min(len(leaf.tokens) for leaf in leaves)
    for index in range(start, end):
        if any(leaf.tokens[index] != first[index] for leaf in leaves):
            end = index
            break
    if end > start:
        marks = sorted({i for leaf in leaves for i in leaf.marks if start <= i < end})
        yield (
            Span(
                tuple(leaf.path for leaf in leaves),
                first[start:end],
                [index - start for index in marks],
            ),
            [[leaf.marks[i] for leaf in leaves if i in leaf.marks] for i in marks],
        )
    branches: dict[int, list[_Leaf]] = defaultdict(list)
    for leaf in leaves:
        if len(leaf.tokens) > end:
            branches[leaf.tokens[end]].append(leaf)
    for branch in branches.values():
        yield from _share(branch, end)
