"""When finished steps are verified, and which of them together (SpecScale, lazy verification).

A verifier's pass costs nearly the same for few tokens as for many, so steps wait for company. What
waiting costs depends on what scores are used for: where drafts are written meanwhile, they are
written without knowing which nodes are worth it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from engine.protocol import events
from engine.scheduling.node import Node
from engine.scheduling.settings import Mechanisms
from engine.scheduling.step_times import StepTimes
from engine.scheduling.tree import ReasoningTree
from engine.verify.prm import Judged, Prm

_TOKENS = 64
"""Verify once so many tokens wait, until it was measured from where on waiting gains nothing."""


class Verification:
    """The steps of one search that wait for their scores."""

    def __init__(
        self,
        prm: Prm,
        mechanisms: Mechanisms,
        emit: Callable[[events.Event], None],
        clock: Callable[[], float],
    ) -> None:
        self._prm = prm
        self._mechanisms = mechanisms
        self._emit = emit
        self._clock = clock
        self._times = StepTimes()
        self._waiting: list[Node] = []
        self._deferred: Counter[int] = Counter()
        """By identity of a waiting node, how many others finished since."""
        self._spent_blind = 0.0

    def add(self, node: Node) -> None:
        """A node of the tree is finished and has no scores."""
        for other in self._waiting:
            self._deferred[id(other)] += 1
        self._waiting.append(node)

    def remove(self, nodes: Iterable[Node]) -> None:
        """Nobody wants the scores of these any more."""
        gone = {id(node) for node in nodes}
        self._waiting = [node for node in self._waiting if id(node) not in gone]

    @property
    def waits(self) -> bool:
        """Whether steps wait for their scores."""
        return bool(self._waiting)

    def wrote(self, seconds: float, rows: int) -> None:
        """A decode pass of `rows` went by while some steps waited."""
        self._spent_blind += seconds * min(1.0, len(self._waiting) / max(1, rows))

    def verify(self, tree: ReasoningTree, writing: int, drafts: Iterable[Node]) -> bool:
        """Verify what is due, if anything is.

        Args:
            writing: strands of opened nodes that are still written.
            drafts: finished drafts that may be verified along.

        Returns:
            Whether anything was scored.
        """
        if not self._waiting:
            return False
        in_written = {id(node) for opened in tree.groups if opened.written for node in opened.nodes}
        complete = [node for node in self._waiting if id(node) in in_written]
        tokens = sum(len(node.tokens) for node in self._waiting)
        if self._mechanisms.early_scores and self._early(tree, tokens):
            ready = self._waiting
        elif len(complete) >= max(1, writing) or (
            complete and sum(len(node.tokens) for node in complete) >= self._enough
        ):
            ready = complete
        else:
            return False
        if self._mechanisms.lookahead:
            ready = [*ready, *self._along(ready, drafts)]
        self.score(ready)
        return True

    @property
    def _enough(self) -> float:
        """Tokens from which on a pass takes longer in proportion, so that waiting gains nothing."""
        if self._mechanisms.verify_tokens is not None:
            return self._mechanisms.verify_tokens
        fit = self._times.fit
        return _TOKENS if fit is None or not fit[1] else max(_TOKENS, fit[0] / fit[1])

    def _early(self, tree: ReasoningTree, tokens: int) -> bool:
        if tokens >= self._enough:
            return True
        if self._mechanisms.deferrals is None:
            fit = self._times.fit
            price = fit[0] if fit is not None else self._times.mean
            return self._spent_blind > price
        if max(self._deferred.values(), default=0) >= self._mechanisms.deferrals:
            return True
        waiting = {id(node) for node in self._waiting}
        families: dict[int, bool] = {}
        for opened in tree.groups:
            for node in opened.nodes:
                if node.scores is None:
                    key = id(node.parent)
                    families[key] = families.get(key, True) and id(node) in waiting
        return any(families.values())

    def _along(self, ready: Sequence[Node], drafts: Iterable[Node]) -> list[Node]:
        """Finished drafts whose parents are scored by then, while the pass stays as cheap.

        One that is too long for the verifier is for the tree to fail on, if it comes to be in it.
        """
        known = {id(node) for node in ready}
        left = self._enough - sum(len(node.tokens) for node in ready)
        chosen: list[Node] = []
        for node in drafts:
            assert node.parent is not None
            if node.scores is None and (node.parent.judged or id(node.parent) in known):
                left -= len(node.tokens)
                if left < 0:
                    break
                if not self._prm.holds(*self._request(node)):
                    continue
                known.add(id(node))
                chosen.append(node)
        return chosen

    def score(self, nodes: Sequence[Node]) -> None:
        """Verify nodes in one batch. Parents that have no scores must be among them."""
        before, fed = self._clock(), self._prm.fed_tokens
        judged = self._prm.score([self._request(node) for node in nodes])
        self._times.record(self._prm.fed_tokens - fed, self._clock() - before)
        for node, judgement in zip(nodes, judged, strict=True):
            node.judged = judgement
        for node in nodes:
            assert node.judged is not None
            node.scores = node.judged.scores_since(self._judged_before(node))
            self._emit(events.StepScored(lineage=node.lineage, scores=node.scores))
        scored = {id(node) for node in nodes}
        self._waiting = [node for node in self._waiting if id(node) not in scored]
        self._deferred.clear()
        self._spent_blind = 0.0

    def adopt(self, node: Node, scores: tuple[float, ...]) -> None:
        """A node's scores are known from before an interruption."""
        node.scores = scores
        node.judged = self._prm.adopt(self._judged_before(node), node.steps, scores)

    def release(self, nodes: Iterable[Node]) -> None:
        """Nothing will be built on these nodes."""
        for node in nodes:
            if node.judged is not None:
                self._prm.release(node.judged)

    def close(self) -> None:
        """Leave nothing in the verifier's cache."""
        self._prm.close()

    def _judged_before(self, node: Node) -> Judged:
        if node.parent is None:
            return self._prm.root
        assert node.parent.judged is not None
        return node.parent.judged

    def _request(self, node: Node) -> tuple[Judged, list[str]]:
        """The steps from the nearest verified ancestor on."""
        steps = node.steps
        parent = node.parent
        while parent is not None and parent.judged is None:
            steps = [*parent.steps, *steps]
            parent = parent.parent
        judged = self._prm.root if parent is None else parent.judged
        assert judged is not None
        return judged, steps
