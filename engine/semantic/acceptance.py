"""Whether a drafted step stands."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Acceptance:
    """The rule by which drafted steps are accepted."""

    ahead: int = 1
    """Steps that are drafted before the target reads them (gamma in the paper)."""
    floor: float = 0.0
    """Least ratio of the two probabilities; a step below it is always written again. It is in the
    paper's code, at 0.5 to 0.7, and not in the paper."""

    def probability(self, target: float, draft: float) -> float:
        """That a step is accepted, given how likely either model is to mean it."""
        ratio = target / draft if draft > 0 else 0.0
        return 0.0 if ratio < self.floor else min(1.0, ratio)
