"""The plan of a run: what its models may take, read anew before each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from engine.errors import EngineError
from engine.memory.beside import draft_bytes, plan_beside
from engine.memory.devices import Device
from engine.memory.estimate import Facts
from engine.memory.learnt import learnt, own_device
from engine.memory.ledger import Ledger, Promise, holders, outstanding
from engine.memory.options import Job, Option
from engine.memory.plan import Plan, budget_for
from engine.memory.record import Records
from engine.memory.sizes import MIB, size_text
from engine.memory.speed import loading, processor
from engine.models.devices import can_use_gpu, native_devices
from engine.protocol.events import Trouble

Warn = Callable[[str, str], None]
"""Told a code and a message."""


@dataclass(frozen=True, slots=True)
class Ask:
    """The models of a run and what it wants of them."""

    generator: Path
    verifier: Path | None
    job: Job
    limit: int | None = None
    """Bytes that may be taken in all; None takes what is free, less a margin."""
    force: bool = False
    """Go on where the models do not fit."""
    draft: Path | None = None
    """A model that drafts steps for the generator, with a cache for as many paths."""
    all_layers: bool = False
    """Whether generator and draft model give the states of all their layers."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A way of sharing the memory that is going to be used."""

    plan: Plan
    option: Option
    generator: Facts
    verifier: Facts | None
    draft: Facts | None = None
    beside: int = 0
    """Bytes of the draft model, which no option counts."""

    @property
    def device(self) -> Device:
        return self.plan.budget.device


class Planner:
    """Plans runs of this process, and promises others what it takes."""

    def __init__(self, records: Records, ledger: Ledger) -> None:
        self.records = records
        self.ledger = ledger

    def plan(self, ask: Ask, held: Callable[[Device], int], warn: Warn) -> Planned:
        """The quickest way that fits what is free now.

        Args:
            held: bytes of a device that this process has, which it may use again.

        Raises:
            EngineError: the models do not fit, or a file cannot be read.
        """
        device, note = own_device(native_devices(), gpu=can_use_gpu())
        if note:
            warn("device", note)
        with self.ledger.locked():
            others = self.ledger.others(device.name)
            taken = sum(outstanding(promise, device) for promise in others)
            free = max(0, device.free + held(device) - taken)
            limit = None if ask.limit is None else min(ask.limit, free)
            budget = budget_for(replace(device, free=free), processor(), loading(), limit)
            generator = learnt(ask.generator, ask.job.cache, device, self.records)
            verifier = ask.verifier and learnt(
                ask.verifier, ask.job.cache, device, self.records, verifies=True
            )
            draft = ask.draft and learnt(ask.draft, ask.job.cache, device, self.records)
            beside = draft_bytes(draft, ask.job, device) if draft else 0
            plan = plan_beside(generator, verifier, ask.job, budget, beside)
            option = plan.chosen
            if option is None and ask.force:
                short = plan.least - budget.bytes
                warn("memory", f"The models need {size_text(short)} more than may be used.")
                enough = replace(budget, bytes=plan.least + MIB)
                option = plan_beside(generator, verifier, ask.job, enough, beside).chosen
            if option is None:
                raise _refusal(plan, others)
            self.ledger.promise(device.name, option.bytes + beside, placed=False)
        if option.job.context < plan.job.context:
            warn(
                "memory",
                f"There is memory for paths of {option.job.context:,} tokens, not of "
                f"{plan.job.context:,}: longer ones end there.",
            )
        return Planned(plan, option, generator, verifier, draft or None, beside)


def _refusal(plan: Plan, others: list[Promise]) -> EngineError:
    message, advice = plan.refusal
    holding = "" if plan.limit_is_why else holders(others)
    message = f"{message} {holding}" if holding else message
    return EngineError(Trouble.MEMORY, message, advice, forcible=True)
