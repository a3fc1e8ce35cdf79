"""What a question would cost, before it is asked."""

from __future__ import annotations

from dataclasses import dataclass

from app.narration import clock
from app.printable import one_line
from app.tui.effort import Effort, Models

_CONTEXT = 4096
"""Tokens of a path that the engine makes room for, unless it is asked for others."""


@dataclass(frozen=True, slots=True)
class Cost:
    """An estimate. What is not known is None."""

    bytes: int | None = None
    """Memory, by the plan."""
    least: float | None = None
    """Seconds of paths of full length as bandwidth and peak rate allow at best, by the plan."""
    trouble: str = ""
    """Why it cannot be done."""
    unknown: bool = False
    """Whether that is only that nothing could be found out."""

    def words(self, took: float | None) -> str:
        """For people.

        Args:
            took: seconds of an earlier question of the kind, which tell more than any plan.
        """
        from engine.client.planning import size_text

        if self.trouble:
            return self.trouble
        parts = []
        if took is not None:
            parts.append(f"≈ {clock(took)}")
        elif self.least is not None:
            parts.append(f"full length ≥ {clock(self.least)}")
        if self.bytes is not None:
            parts.append(f"≈ {size_text(self.bytes)}")
        return " · ".join(parts)


def planned(models: Models, effort: Effort) -> Cost:
    """Plan a question on this machine as it is now, which may take a second."""
    from engine.client.planning import CacheType, Job, plan_for, size_text
    from engine.errors import EngineError

    request = models.request("", effort)
    job = Job(
        n=request.search.n,
        width=request.search.width,
        context=request.context or _CONTEXT,
        cache=CacheType(request.cache),
    )
    try:
        plan = plan_for(request.generator, request.verifier, job, gpu=None, limit=None).plan
    except EngineError as error:
        return Cost(trouble=one_line(error.message), unknown=True)
    if (option := plan.chosen) is None:
        room = f"needs {size_text(plan.least)}, {size_text(plan.budget.bytes)} may be used"
        return Cost(trouble=f"does not fit: {room}")
    return Cost(option.bytes, option.seconds)
