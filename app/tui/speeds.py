"""How long questions have taken, kept between two starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from app.tui.effort import Effort, Models
from app.tui.turn import Turn


class Speeds:
    """Seconds of the latest question of each kind.

    Args:
        took: what was kept, by the key of a kind.
        keep: called with all there is when it has changed.
    """

    def __init__(self, took: Mapping[str, float], keep: Callable[[dict[str, float]], None]) -> None:
        self._took = dict(took)
        self._keep = keep

    def learn(self, models: Models, turn: Turn, seconds: float) -> None:
        """A turn that these models answered has come to its end."""
        asked = msgspec.structs.replace(turn.request, log=None)
        if asked == models.request(turn.problem, turn.effort, seed=asked.seed):
            self._took[_key(models, turn.effort)] = seconds
            self._keep(dict(self._took))

    def of(self, models: Models) -> dict[Effort, float]:
        """What is known of these models."""
        keys = {effort: _key(models, effort) for effort in Effort}
        return {effort: self._took[key] for effort, key in keys.items() if key in self._took}


def _key(models: Models, effort: Effort) -> str:
    guide = "alone" if effort is Effort.QUICK else models.verifier or "alone"
    judge = f", {models.rerank}" if models.rerank and effort is not Effort.QUICK else ""
    draft = f", {models.draft} by {models.accept}" if models.draft else ""
    return f"{models.generator}, {guide}, {models.paths(effort)} paths{judge}{draft}"
