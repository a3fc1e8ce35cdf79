"""A plan for models by name, on this machine or on another."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from engine import catalogue
from engine.catalogue import Role
from engine.client.machine import features
from engine.client.unseen import unseen
from engine.errors import EngineError
from engine.memory.devices import Device, Kind, nvidia, ram
from engine.memory.estimate import CacheType, Facts, facts
from engine.memory.options import Budget, Job, Option
from engine.memory.plan import MARGIN, Plan, budget_for, make_plan
from engine.memory.record import Backend, Records, identity
from engine.memory.sizes import parse_size, size_text
from engine.memory.speed import named, processor, speeds
from engine.models.gguf import read_header
from engine.places import runs_dir
from engine.protocol.events import Trouble
from engine.search import MAX_PATHS

__all__ = ["MARGIN", "CacheType", "Job", "Option", "Planned", "parse_size", "plan_for", "size_text"]

_BACKENDS: dict[Kind, Backend] = {Kind.RAM: "cpu", Kind.GPU: "cuda", Kind.UNIFIED: "metal"}


@dataclass(frozen=True, slots=True)
class Planned:
    generator: Facts
    verifier: Facts | None
    plan: Plan
    note: str
    """Why the plan is not for the GPU that is there, and which models are not; usually empty."""


def plan_for(
    generator: str, verifier: str | None, job: Job, *, gpu: str | None, limit: int | None
) -> Planned:
    """Plan two models, by catalogue id or path, without loading anything.

    Args:
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
    budget, note = _budget(gpu, limit)
    first, told = _facts("generator", generator, job, budget.device)
    second, also = None, ""
    if verifier is not None:
        second, also = _facts("verifier", verifier, job, budget.device)
    plan = make_plan(first, second, job, budget)
    return Planned(first, second, plan, _joined(note, told, also))


def plan_alone(role: Role, name: str, job: Job) -> Planned:
    """Plan one model by itself: what does not fit so fits with no other either.

    Raises:
        EngineError: the model is unknown, or its file cannot be read.
    """
    budget, note = _budget(None, None)
    model, told = _facts(role, name, job, budget.device)
    return Planned(model, None, make_plan(model, None, job, budget), _joined(note, told))


def _joined(*notes: str) -> str:
    return " ".join(filter(None, notes))


def records_file() -> Path:
    """Where measurements are kept."""
    return runs_dir().parent / "memory.jsonl"


def own_device() -> tuple[Device, str]:
    """The GPU with most free memory if llama.cpp can use it and its speed is known, else RAM."""
    gpus = nvidia(speeds()).gpus
    if not gpus:
        return ram(), ""
    best = max(gpus, key=lambda gpu: gpu.free)
    if not features().gpu:
        return ram(), f"{best.name} is not used: see 'sapwood doctor'."
    if best.speed is None:
        note = f"The speed of {best.name} is not known; times are this machine's processor's."
        return best, note
    return best, ""


def _budget(gpu: str | None, limit: int | None) -> tuple[Budget, str]:
    host = processor()
    device, note = own_device() if gpu is None else (named(gpu), "")
    return budget_for(device, device.speed or host, host, limit), note


def _facts(role: Role, name: str, job: Job, device: Device) -> tuple[Facts, str]:
    """Size and shape of a model, with what was learnt of its file or as the hub tells, and a note
    on that."""
    place = catalogue.locate(role, name)
    if not isinstance(place, Path):
        return unseen(role, name, place)
    read = facts(read_header(place), place.stat().st_size)
    backend = _BACKENDS[device.kind]
    surplus = Records(records_file()).surplus(identity(place), job.cache.value, backend)
    return replace(read, surplus=surplus), ""
