"""Which parts of a token tree are in a model's KV cache, and how to get the rest back.

A `Stem` is a run of tokens after a parent stem. It may be *resident*: a path of the cache ends
exactly where it ends. Stems that nobody is writing on are evicted, least recently used first,
when paths or cells run short; their tokens are known, so they can be computed again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from engine.models.base import TokenModel
from engine.models.host_copies import HostCopies


@dataclass(eq=False, slots=True)
class Stem:
    """Tokens of one node."""

    parent: Stem | None
    tokens: Sequence[int]
    start: int = field(init=False)
    """Tokens before this stem."""

    def __post_init__(self) -> None:
        self.start = self.parent.end if self.parent else 0

    @property
    def root(self) -> Stem:
        """The first stem of the path."""
        stem = self
        while stem.parent is not None:
            stem = stem.parent
        return stem

    @property
    def end(self) -> int:
        """Tokens from the root to the end of this stem."""
        return self.start + len(self.tokens)

    def tail(self, position: int) -> list[int]:
        """The tokens from `position` (counted from the root) to the end of this stem."""
        parts: list[Sequence[int]] = []
        stem: Stem | None = self
        while stem is not None and stem.end > position:
            parts.append(stem.tokens[max(0, position - stem.start) :])
            stem = stem.parent
        return [token for part in reversed(parts) for token in part]


class KvTree:
    """Hands out paths of one model and decides what stays in its cache.

    Args:
        copies: keeps what leaves the cache in host memory.
    """

    def __init__(self, model: TokenModel, copies: HostCopies[Stem] | None = None) -> None:
        if model.max_paths < 2:
            raise ValueError("a tree needs a path to write on and one to fork from")
        self.model = model
        self.copies = copies
        self._free = list(range(model.max_paths - 1, -1, -1))
        self._resident: dict[Stem, int] = {}
        """Evictable stems and their paths, least recently used first."""
        self.reserved = 0
        """Cells that a search has made room for and not filled yet."""
        self.evicted_tokens = 0
        self.restored_tokens = 0

    def new_path(self, *, evict: bool = True) -> int | None:
        """A free path, evicting if need be and allowed; None when every path is being written."""
        if not self._free and not (evict and self._evict()):
            return None
        return self._free.pop()

    def missing(self, stem: Stem) -> int:
        """Cells that will be needed to reach the end of `stem` on a path of one's own."""
        base = stem.root if self._copied(stem) else self.nearest(stem)
        return stem.end - (self.model.length(self._resident[base]) if base else 0)

    def claim(
        self, stem: Stem, *, keep: bool = True, evict: bool = True
    ) -> tuple[int, list[int]] | None:
        """A path of one's own that leads as far towards the end of `stem` as the cache knows.

        Args:
            keep: somebody else will start from `stem` too. Otherwise its own path is handed over.
            evict: something else may have to leave for it.

        Returns:
            The path and the tokens still to be fed to reach the end of `stem`; None when every
            path is being written.
        """
        copied = self._copied(stem)
        base = stem.root if copied else self.nearest(stem)
        if base is stem and not keep and not (self.copies and stem.parent is None):
            path = self._resident.pop(stem)
            return path, stem.tail(self.model.length(path))
        if base is not None:
            self._resident[base] = self._resident.pop(base)  # most recently used
        path = self._free.pop() if self._free else None
        if path is None:
            if not (evict and self._evict(spare=base)):
                return None
            path = self._free.pop()
        if base is not None and base in self._resident:
            self.model.fork(self._resident[base], path)
            if copied is not None:
                self._bring_back(copied, path)
        return path, stem.tail(self.model.length(path))

    def _bring_back(self, copied: Stem, path: int) -> None:
        """Restore a copy, unless it made way for another meanwhile, or room was made before that
        which is copied had to leave for it."""
        assert self.copies is not None
        length = self.copies.length(copied)
        if length and self.make_room(length, evict=False):
            self.restored_tokens += self.copies.bring_back(copied, path)

    def _copied(self, stem: Stem) -> Stem | None:
        """The stem whose copy in host memory leads further than any that is resident.

        A copy lacks the first stem of its path, which all paths share and which therefore has to
        be in the cache.
        """
        if self.copies is None or stem.root not in self._resident:
            return None
        begun = self.model.length(self._resident[stem.root])
        at: Stem | None = stem
        while at is not None and at not in self._resident:
            if self.copies.start(at) == begun:
                return at
            at = at.parent
        return None

    def nearest(self, stem: Stem) -> Stem | None:
        """The resident stem that a claim of `stem` would start from."""
        base: Stem | None = stem
        while base is not None and base not in self._resident:
            base = base.parent
        return base

    def settle(self, path: int, stem: Stem) -> None:
        """Give back a claimed path that now holds (nearly) all of `stem`, to be forked later."""
        if stem in self._resident:
            self.drop(path)
        else:
            self._resident[stem] = path

    def drop(self, path: int) -> None:
        """Give back a claimed path and forget what it holds."""
        self.model.drop(path)
        self._free.append(path)

    def forget(self, stem: Stem) -> None:
        """Nobody will build on `stem` again."""
        if self.copies is not None:
            self.copies.forget(stem)
        path = self._resident.pop(stem, None)
        if path is not None:
            self.drop(path)

    def forget_below(self, root: Stem) -> None:
        """Nobody will build on `root` or on anything that follows it."""
        known = [*self._resident, *(self.copies.kept() if self.copies is not None else ())]
        for stem in known:
            at: Stem | None = stem
            while at is not None and at is not root:
                at = at.parent
            if at is root:
                self.forget(stem)

    def alone(self, claimed: int) -> bool:
        """Whether `claimed` paths are all that anybody writes on now."""
        return self.model.max_paths - len(self._free) - len(self._resident) == claimed

    def expect(self, stems: Sequence[Stem]) -> None:
        """These will be claimed next, the first of them soonest; what is wanted last goes first."""
        for stem in reversed(stems):
            base = self.nearest(stem)
            if base is not None:
                self._resident[base] = self._resident.pop(base)

    def make_room(self, cells: int, *, evict: bool = True) -> bool:
        """Evict until `cells` more fit. False when what is being written takes too much."""
        while self.model.used + self.reserved + cells > self.model.capacity:
            if not (evict and self._evict()):
                return False
        return True

    def _evict(self, spare: Stem | None = None) -> bool:
        # The first stem of a path goes last: as long as anything follows it, nothing is gained.
        for stem in sorted(self._resident, key=lambda stem: stem.parent is None):
            if stem is not spare:
                before = self.model.used
                path = self._resident.pop(stem)
                if self.copies is not None and stem.root in self._resident:
                    self.copies.keep(stem, path, self.model.length(self._resident[stem.root]))
                self.drop(path)
                self.evicted_tokens += before - self.model.used
                return True
        return False
