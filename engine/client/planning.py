"""A plan for models by name, on this machine or on another."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from engine import catalogue
from engine.client.machine import features
from engine.errors import EngineError
from engine.memory.devices import Device, Kind, nvidia, ram
from engine.memory.estimate import CacheType, Facts, facts
from engine.memory.options import Job, Option
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
    """Why the plan is not for the GPU that is there; usually empty."""


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
    host = processor()
    note = ""
    if gpu is not None:
        device = named(gpu)
    else:
        device, note = _own_device()
    budget = budget_for(device, device.speed or host, host, limit)
    records = Records(records_file())

    def learnt(path: Path) -> Facts:
        read = facts(read_header(path), path.stat().st_size)
        backend = _BACKENDS[device.kind]
        surplus = records.surplus(identity(path), job.cache.value, backend)
        return replace(read, surplus=surplus)

    first = learnt(catalogue.generator_file(generator))
    second = None if verifier is None else learnt(_verifier_file(verifier))
    return Planned(first, second, make_plan(first, second, job, budget), note)


def records_file() -> Path:
    """Where measurements are kept."""
    return runs_dir().parent / "memory.jsonl"


def _own_device() -> tuple[Device, str]:
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


def _verifier_file(name: str) -> Path:
    if name in catalogue.load().verifiers:
        return catalogue.verifier_file(name, None)[0]
    return catalogue.generator_file(name)  # a path: a plan needs no format
