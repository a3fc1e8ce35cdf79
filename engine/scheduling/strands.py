"""The sequences in the cache that are being written, and what becomes of them token by token."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from engine.models.base import Span, TokenModel
from engine.models.kv_tree import KvTree, Stem
from engine.models.sampling import Sampler
from engine.protocol import events
from engine.scheduling.node import Node, Strand
from engine.scheduling.settings import Counts
from engine.scheduling.tree import ReasoningTree
from engine.search.policy import Ending

_HEADROOM = 32
"""Cells a path should find free beyond its own tokens before it starts or starts again."""


class Strands:
    """Writes nodes of one search.

    Args:
        spare: gives up a draft so that a path becomes free; False if there is none.
    """

    def __init__(
        self,
        model: TokenModel,
        cache: KvTree,
        tree: ReasoningTree,
        sampler: Sampler,
        counts: Counts,
        emit: Callable[[events.Event], None],
        spare: Callable[[], bool],
    ) -> None:
        self._model = model
        self._cache = cache
        self._tree = tree
        self._sampler = sampler
        self._counts = counts
        self._emit = emit
        self._spare = spare
        self._writing: list[Strand] = []

    def __len__(self) -> int:
        return len(self._writing)

    def __iter__(self) -> Iterator[Strand]:
        return iter(self._writing)

    @property
    def certain(self) -> list[Strand]:
        """Strands of nodes that are part of the tree."""
        return [strand for strand in self._writing if not strand.draft]

    @property
    def drafting(self) -> list[Strand]:
        return [strand for strand in self._writing if strand.draft]

    def start(self, siblings: list[Node], *, keep: bool, draft: bool = False) -> bool:
        """Begin or go on writing some siblings. False when there is no room for them now.

        Args:
            keep: others will start from the same parent.
            draft: nothing has to leave the cache for it. Nor for others, while drafts are written,
                which have to go first.
        """
        first = siblings[0]
        stem = self._tree.stem_before(first)
        if first.tokens:
            stem = Stem(stem, tuple(first.tokens))
        writing = sum(len(strand.feed) for strand in self._writing)
        headroom = _HEADROOM * (len(self._writing) + 1) if self._writing else 0
        needed = writing + self._cache.missing(stem) + headroom
        evict = not draft and not self.drafting
        if not self._cache.make_room(needed, evict=evict) and not self._cache.alone(0):
            return False
        restored = self._cache.restored_tokens
        claimed = self._cache.claim(stem, keep=keep, evict=evict)
        if claimed is None:
            return False
        path, feed = claimed
        self._counts.restored += self._cache.restored_tokens - restored
        self._counts.prefill += len(feed) - 1
        self._counts.recomputed += len(feed) - 1
        for node in siblings:
            if not node.opened:
                node.opened = True
                self._emit(events.NodeOpened(lineage=node.lineage))
        self._writing.append(Strand(path, feed, siblings))
        return True

    def stop(self, nodes: Iterable[Node]) -> None:
        """Write these no more."""
        stopped = {id(node) for node in nodes}
        strands, self._writing = self._writing, []
        for strand in strands:
            strand.members = [node for node in strand.members if id(node) not in stopped]
            if strand.members:
                self._writing.append(strand)
            else:
                self._cache.drop(strand.path)

    def forget(self, stem: Stem) -> None:
        """Nobody will build on `stem` again."""
        self._cache.forget(stem)

    def close(self) -> None:
        """Leave nothing in the cache."""
        self.stop([node for strand in self._writing for node in strand.members])
        self._cache.forget_below(self._tree.root)

    def spans(self, strands: list[Strand]) -> list[Span]:
        """What a pass computes of some strands."""
        return [Span((strand.path,), strand.feed) for strand in strands]

    def compute(self, strands: list[Strand], spans: list[Span]) -> np.ndarray:
        """Compute the spans of a pass; returns the logits that `draw` takes.

        Raises:
            Interrupted, EngineError: as `TokenModel.forward`.
        """
        return self._model.forward(spans)

    def pop(self) -> Strand:
        """Give up the strand that was started last."""
        strand = self._writing.pop()
        self._cache.drop(strand.path)
        return strand

    def draw(
        self, strands: list[Strand], logits: np.ndarray
    ) -> tuple[list[Node], list[list[Node]]]:
        """Draw a token for every node of strands that a pass has computed.

        Args:
            logits: shape (strands, vocabulary).

        Returns:
            The nodes that are finished, and siblings that found no path to be written on.
        """
        computed = {id(strand) for strand in strands}
        self._writing = [strand for strand in self._writing if id(strand) not in computed]
        finished: list[Node] = []
        homeless: list[list[Node]] = []
        for strand, row in zip(strands, logits, strict=True):
            uniforms = [node.draws.uniform(len(node.tokens)) for node in strand.members]
            agreeing: dict[int, list[Node]] = defaultdict(list)
            for node, token in zip(strand.members, self._sampler.draw(row, uniforms), strict=True):
                agreeing[token].append(node)
            paths = self._split(strand, len(agreeing))
            for (token, members), path in zip(agreeing.items(), paths, strict=True):
                ending = self._append(token, members)
                if ending is not None:
                    self.finish(path, members, ending)
                    finished += members
                elif path is None:
                    homeless.append(members)
                else:
                    self._writing.append(Strand(path, [token], members))
        return finished, homeless

    def finish(self, path: int | None, members: list[Node], ending: Ending) -> None:
        """Nodes that agree to their last token are written."""
        stem = Stem(self._tree.stem_before(members[0]), tuple(members[0].tokens))
        if path is not None:
            if ending in (Ending.STEP, Ending.LENGTH):
                self._cache.settle(path, stem)
            else:
                self._cache.drop(path)
        for node in members:
            # Where a path can go on, its next node completes the character.
            rest = "" if ending is Ending.LENGTH else node.stepping.finish()
            if rest:
                node.text += rest
                self._emit(events.TextAppended(lineage=node.lineage, text=rest))
            node.stem = stem
            node.ending = ending
            self._emit(
                events.StepFinished(
                    lineage=node.lineage,
                    text=node.text,
                    tokens=tuple(node.tokens),
                    ending=ending.value,
                )
            )

    def _split(self, strand: Strand, count: int) -> list[int | None]:
        """The strand's path and copies of it; None where every path is taken."""
        paths: list[int | None] = [strand.path]
        for _ in range(count - 1):
            copy = self._cache.new_path(evict=not strand.draft)
            while copy is None and not strand.draft and self._spare():
                copy = self._cache.new_path()
            if copy is not None:
                self._model.fork(strand.path, copy)
            paths.append(copy)
        return paths

    def _append(self, token: int, members: list[Node]) -> Ending | None:
        """Add a drawn token to nodes that agree; returns how it ends them, if it does."""
        vocabulary = self._model.vocabulary
        self._counts.generated += len(members)
        self._counts.drafted += len(members) if members[0].draft else 0
        end = vocabulary.is_end(token)
        piece = b"" if end else vocabulary.piece(token)
        for node in members:
            node.tokens.append(token)
            text = node.stepping.append(piece)
            if text:
                node.text += text
                self._emit(events.TextAppended(lineage=node.lineage, text=text))
        return self._ending(members[0], end)

    def _ending(self, node: Node, end: bool) -> Ending | None:
        if end:
            return Ending.END
        if self._tree.stem_before(node).end + len(node.tokens) >= self._tree.limits.context:
            return Ending.CONTEXT
        if node.stepping.ended and not node.whole:
            return Ending.STEP
        if len(node.tokens) >= node.limit:
            return Ending.LENGTH
        return None
