"""A plan for models by name, on this machine or on another."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from engine import catalogue
from engine.catalogue import Role
from engine.client.machine import features
from engine.client.unseen import unseen
from engine.errors import EngineError
from engine.memory import learnt
from engine.memory.beside import draft_bytes, plan_beside
from engine.memory.devices import Device
from engine.memory.estimate import CacheType, Facts
from engine.memory.ledger import Ledger, holders, ledger_file, outstanding
from engine.memory.options import DEFAULT_CONTEXT, HEAD_MARKERS, Budget, Job, Option
from engine.memory.plan import MARGIN, Plan, budget_for, make_plan
from engine.memory.record import Records, records_file
from engine.memory.sizes import parse_size, size_text
from engine.memory.speed import loading, named, processor
from engine.protocol.events import Trouble
from engine.search import MAX_PATHS

__all__ = [
    "DEFAULT_CONTEXT",
    "MARGIN",
    "CacheType",
    "Job",
    "Option",
    "Plan",
    "Planned",
    "parse_size",
    "plan_for",
    "size_text",
]


@dataclass(frozen=True, slots=True)
class Planned:
    generator: Facts
    verifier: Facts | None
    plan: Plan
    note: str
    """Why the plan is not for the GPU that is there, who else holds memory, and which models are
    not here; usually empty."""
    draft: Facts | None = None
    beside: int = 0
    """Bytes of the draft model, which no option counts."""


def plan_for(
    generator: str,
    verifier: str | None,
    job: Job,
    *,
    gpu: str | None,
    limit: int | None,
    draft: str | None = None,
) -> Planned:
    """Plan two models, by catalogue id or path, without loading anything.

    Args:
        draft: a model that drafts for the generator.
        gpu: name of a device to plan for instead of this machine's.
        limit: bytes the plan may use; by default what is free, less a margin.

    Raises:
        EngineError: a model or the device is unknown, or a file cannot be read.
    """
    if job.n > MAX_PATHS:
        raise EngineError(
            Trouble.USAGE,
            f"A search has at most {MAX_PATHS} paths, not {job.n}.",
            "Use a smaller n.",
        )
    if verifier is not None and _has_head(verifier):
        job = replace(job, markers=HEAD_MARKERS)
    budget, note = _budget(gpu, limit)
    first, told = _facts("generator", generator, job, budget.device)
    second, also = None, ""
    if verifier is not None:
        second, also = _facts("verifier", verifier, job, budget.device)
    third, beside, more = None, 0, ""
    if draft is not None:
        third, more = _facts("generator", draft, job, budget.device)
        beside = draft_bytes(third, job, budget.device)
    plan = plan_beside(first, second, job, budget, beside)
    return Planned(first, second, plan, _joined(note, told, also, more), third, beside)


def plan_alone(role: Role, name: str, job: Job) -> Planned:
    """Plan one model by itself: what does not fit so fits with no other either.

    Raises:
        EngineError: the model is unknown, or its file cannot be read.
    """
    if role == "verifier":
        job = replace(job, outputs=HEAD_MARKERS if _has_head(name) else job.markers)
    budget, note = _budget(None, None)
    model, told = _facts(role, name, job, budget.device)
    return Planned(model, None, make_plan(model, None, job, budget), _joined(note, told))


def _has_head(verifier: str) -> bool:
    """Whether a verifier is read by a head of its own, as far as is known."""
    known = catalogue.load()
    entry = known.verifiers.get(verifier)
    if entry is not None:
        format = known.formats.get(entry.format or "")
        return format is not None and format.head
    with suppress(EngineError):  # what is wrong with it is told where it is read
        return catalogue.verifier_file(verifier, None)[1].head
    return False


def _joined(*notes: str) -> str:
    return " ".join(filter(None, notes))


def own_device() -> tuple[Device, str]:
    """Where models go on this machine, less what other runs have promised themselves.

    The text says why that is not the GPU that is there, and who else holds memory.
    """
    engine = features()
    device, note = learnt.own_device(engine.devices, gpu=engine.gpu)
    others = Ledger(ledger_file()).others(device.name)
    taken = sum(outstanding(promise, device) for promise in others)
    device = replace(device, free=max(0, device.free - taken))
    return device, _joined(note, holders(others))


def _budget(gpu: str | None, limit: int | None) -> tuple[Budget, str]:
    device, note = own_device() if gpu is None else (named(gpu), "")
    return budget_for(device, processor(), loading(), limit), note


def _facts(role: Role, name: str, job: Job, device: Device) -> tuple[Facts, str]:
    """Size and shape of a model, with what was learnt of its file or as the hub tells, and a note
    on that."""
    place = catalogue.locate(role, name)
    if not isinstance(place, Path):
        return unseen(role, name, place)
    records, verifies = Records(records_file()), role == "verifier"
    return learnt.learnt(place, job.cache, device, records, verifies=verifies), ""
