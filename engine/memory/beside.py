"""Plans for two models beside a third that drafts for them all the time."""

from __future__ import annotations

from dataclasses import replace

from engine.memory.devices import Device, Kind
from engine.memory.estimate import Facts, predict
from engine.memory.options import Budget, Job
from engine.memory.plan import Plan, make_plan
from engine.memory.strategies import draft_setting


def draft_bytes(draft: Facts, job: Job, device: Device) -> int:
    """What a draft model takes of a device."""
    on_device = device.kind is not Kind.RAM
    taken = predict(draft, draft_setting(job, draft, on=device.kind), gpu=on_device)
    return taken.on_device if device.kind is Kind.GPU else taken.total


def plan_beside(
    generator: Facts, verifier: Facts | None, job: Job, budget: Budget, beside: int
) -> Plan:
    """A plan for what a draft model of `beside` bytes leaves; 0 is none.

    It works in every pass, so that no models take turns. No option counts its bytes.
    """
    left = budget
    if beside:
        left = replace(budget, bytes=max(0, budget.bytes - beside), moving=None)
    plan = make_plan(generator, verifier, job, left)
    return replace(plan, budget=budget, least=plan.least + beside, whole=plan.whole + beside)
