"""What a question would cost, before it is asked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from app.narration import clock
from app.printable import one_line
from app.tui.effort import Effort, Models
from engine.protocol import SolveRequest

if TYPE_CHECKING:
    from engine.client.planning import Plan


@dataclass(frozen=True, slots=True)
class Cost:
    """An estimate. What is not known is None."""

    bytes: int | None = None
    """Memory, by the plan."""
    least: float | None = None
    """Seconds of paths of full length as bandwidth and peak rate allow at best, by the plan, the
    ranking at the end included. Most paths end earlier."""
    trouble: str = ""
    """Why it cannot be done."""
    unknown: bool = False
    """Whether that is only that nothing could be found out."""
    unranked: str = ""
    """Why the solutions would be found and not be ranked."""

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
            parts.append(f"full length {clock(self.least)} at best")
        if self.bytes is not None:
            parts.append(f"≈ {size_text(self.bytes)}")
        if self.unranked:
            parts.append(f"ranking {self.unranked}")
        return " · ".join(parts)


def planned(models: Models, effort: Effort) -> Cost:
    """Plan a question on this machine as it is now, which may take a second."""
    from engine.client.planning import DEFAULT_CONTEXT, CacheType, Job, plan_for
    from engine.errors import EngineError

    request = models.request("", effort)
    context = request.context or DEFAULT_CONTEXT
    job = Job(request.search.n, request.search.width, context, CacheType(request.cache))
    draft = request.drafting.draft if request.drafting is not None else None
    try:
        found = plan_for(
            request.generator, request.verifier, job, gpu=None, limit=None, draft=draft
        )
        if (option := found.plan.chosen) is None:
            return Cost(trouble=f"does not fit: {_room(found.plan)}")
        cost = Cost(option.bytes + found.beside, option.seconds)
        return cost if request.rerank is None else _ranked(cost, request, context)
    except EngineError as error:
        return Cost(trouble=one_line(error.message), unknown=True)


def _ranked(cost: Cost, request: SolveRequest, context: int) -> Cost:
    """With the model that ranks at the end, which takes the place of all others. A judgement reads
    a path along with what is written about it."""
    from engine.client.planning import Job, plan_for

    assert request.rerank is not None
    n = request.search.n
    job = Job(n, n, 2 * context + request.rerank_tokens)
    plan = plan_for(request.rerank, None, job, gpu=None, limit=None).plan
    if (option := plan.chosen) is None:  # the engine then gives what it has found
        return replace(cost, unranked=f"does not fit: {_room(plan)}")
    assert cost.bytes is not None
    assert cost.least is not None
    return replace(cost, bytes=max(cost.bytes, option.bytes), least=cost.least + option.seconds)


def _room(plan: Plan) -> str:
    from engine.client.planning import size_text

    return f"needs {size_text(plan.least)}, {size_text(plan.budget.bytes)} may be used"
