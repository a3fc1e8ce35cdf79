"""Beam search that verifies more often at the beginning."""

from __future__ import annotations

from dataclasses import dataclass, replace

from engine.search.beam import Beam
from engine.search.policy import Branch, Group

EARLY_ROUNDS = 3
EARLY_TOKENS = 64


@dataclass(frozen=True)
class VaryingGranularity(Beam):
    """Beam search whose first steps are short, so that early mistakes are cut early.

    The schedule of the FastTTS artifact: in the first 3 rounds a step has at most 64 tokens or
    a quarter of its usual cap. The last round is always written out to its end.
    """

    step_tokens: int
    """The usual cap on the tokens of a step."""

    def _group(self, round: int, branches: tuple[Branch, ...]) -> Group:
        group = super()._group(round, branches)
        if round >= EARLY_ROUNDS or group.whole:
            return group
        return replace(group, step_tokens=max(1, min(EARLY_TOKENS, self.step_tokens // 4)))
