"""What is known of this machine, for `sapwood doctor`. Nothing of it names its user."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import subprocess
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import msgspec
import psutil

from engine import catalogue
from engine.catalogue import ROLES
from engine.client.boot import python
from engine.client.local import LocalEngine
from engine.client.wheels import cuda_wheel, install_command
from engine.errors import EngineError
from engine.memory.devices import Device, Kind, Nvidia, nvidia, ram
from engine.memory.speed import speeds
from engine.models.devices import Native
from engine.places import runs_dir
from engine.protocol import Answered, RunFailed, RunFinished, Search, SolveRequest

__all__ = ["Device", "Kind", "Machine", "Nvidia", "SelfTest", "describe", "self_test"]

_PATIENCE = 60.0
"""Seconds to wait for llama.cpp to tell its features."""
_FRESH = 5.0
"""Seconds for which an answer of it is used again: planning many models asks as often."""
_PROBLEM = "Tom has 14 apples. He finds 5 more. How many apples does Tom have now?"


class Engine(msgspec.Struct, frozen=True):
    """The installed llama.cpp; `problem` tells why nothing is known of it."""

    version: str = ""
    gpu: bool = False
    """Whether the build can use a GPU at all."""
    system: str = ""
    threads: int = 0
    devices: tuple[Native, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Model:
    id: str
    role: str
    bytes: int | None
    """Size of its file; None where it is not on this machine."""


@dataclass(frozen=True, slots=True)
class Machine:
    system: str
    python: str
    cores: int
    """Physical ones."""
    ram: Device
    nvidia: Nvidia
    engine: Engine
    models: tuple[Model, ...]
    data: Path
    """Where Sapwood keeps what it writes."""
    disk_free: int | None
    advice: tuple[str, ...]
    """What is wrong, and what to do about it."""


@dataclass(frozen=True, slots=True)
class SelfTest:
    """A search of the embedded pair; `problem` is empty where it came to its end."""

    seconds: float
    answer: str = ""
    tokens: int = 0
    problem: str = ""


def describe() -> Machine:
    """Look at the machine, which takes about a second."""
    driver, engine = nvidia(speeds()), features()
    data = runs_dir().parent
    models, mistakes = _models()
    return Machine(
        system=f"{platform.system()} {platform.release()}, {platform.machine()}",
        python=platform.python_version(),
        cores=psutil.cpu_count(logical=False) or os.cpu_count() or 0,
        ram=ram(),
        nvidia=driver,
        engine=engine,
        models=tuple(models),
        data=data,
        disk_free=_disk_free(data),
        advice=(*mistakes, *advise(driver, engine, apple=ram().kind is Kind.UNIFIED)),
    )


def features() -> Engine:
    """What the installed llama.cpp tells of itself; not older than a few seconds."""
    return _features(int(time.monotonic() / _FRESH))


@lru_cache(maxsize=1)
def _features(moment: int) -> Engine:
    """Ask it, in a process of its own."""
    command = python("engine.models.features")
    try:
        ran = subprocess.run(command, capture_output=True, timeout=_PATIENCE, check=True)
        return msgspec.json.decode(ran.stdout, type=Engine)
    except subprocess.CalledProcessError as error:
        last = error.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        return Engine(problem=f"llama.cpp cannot be loaded: {last or error}")
    except (OSError, subprocess.TimeoutExpired, msgspec.DecodeError) as error:
        return Engine(problem=f"llama.cpp does not answer: {error}")


def advise(driver: Nvidia, engine: Engine, *, apple: bool) -> list[str]:
    """The commonest trap: a build for the processor only, though a GPU is there."""
    if engine.problem:
        return [f"{engine.problem}. Install it with: {install_command('cpu', '0.3.36')}"]
    if engine.gpu:
        return []
    if apple:
        return [_only_processor("the GPU of this Mac", "metal", engine.version)]
    if not driver.gpus:
        return []
    wheel = cuda_wheel(driver.cuda, driver.gpus[0].capability)
    if wheel is None:
        return [f"The NVIDIA driver {driver.driver} is too old for any wheel: update the driver."]
    return [_only_processor(driver.gpus[0].name, wheel, engine.version)]


def _only_processor(gpu: str, wheel: str, version: str) -> str:
    return (
        f"The installed llama.cpp computes on the processor only; {gpu} is not used. Install the "
        f"build for it with: {install_command(wheel, version)} (if pip finds no such version, the "
        "index lacks it; without --only-binary pip would compile one, again for the processor only)"
    )


async def self_test(seconds: float = 5.0) -> SelfTest:
    """Solve a story with the embedded pair, stopping it after `seconds`."""
    request = SolveRequest(
        problem=_PROBLEM,
        generator="seedling",
        verifier="seedling",
        search=Search(n=4, width=2),
        time_limit=seconds,
    )
    begin = time.monotonic()
    answer, tokens, problem = "", 0, "the run ended without a word"
    async with LocalEngine() as engine:
        async with asyncio.timeout(_PATIENCE):
            async for event in engine.solve(request):
                match event:
                    case Answered():
                        answer = event.answer
                    case RunFinished():
                        tokens, problem = event.counters.generated_tokens, ""
                    case RunFailed():
                        problem = event.message
    return SelfTest(time.monotonic() - begin, answer, tokens, problem)


def _models() -> tuple[list[Model], list[str]]:
    """The models that are known, and what is wrong with the user's own catalogue."""
    try:
        known = catalogue.load()
    except EngineError as error:
        return [], [f"{error.message} {error.advice}"]
    found = []
    for role in ROLES:
        for id, entry in known.entries(role).items():
            path = catalogue.find(entry)
            size = path.stat().st_size if path is not None and path.is_file() else None
            found.append(Model(id, role, size))
    return found, []


def _disk_free(folder: Path) -> int | None:
    """Free bytes where `folder` is or will be."""
    for place in (folder, *folder.parents):
        if place.exists():
            return shutil.disk_usage(place).free
    return None
