"""The words of a plan: what is asked, what may be used, and one way of sharing it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from engine.memory.devices import Device
from engine.memory.estimate import CacheType
from engine.memory.roofline import Speed


class Strategy(StrEnum):
    COLLOCATED = "collocated"
    IDLE_CACHE = "idle cache to host"
    IDLE_MODEL = "idle model to host"
    FEWER_LAYERS = "fewer layers on the GPU"
    SMALLER_N = "smaller n"
    SMALLER_CONTEXT = "smaller context"


@dataclass(frozen=True, slots=True)
class Job:
    """What is asked of the models."""

    n: int = 8
    width: int = 4
    context: int = 2048
    """Tokens of the longest path."""
    cache: CacheType = CacheType.F16


@dataclass(frozen=True, slots=True)
class Budget:
    """Where the models may be, and how fast that is."""

    device: Device
    bytes: int
    """What may be used of the device; the margin is already taken off."""
    speed: Speed
    host: Speed
    """The processor, which computes the layers that are not on a GPU."""


@dataclass(frozen=True, slots=True)
class Share:
    """What one model gets."""

    paths: int
    """Paths of full length that its cache holds at once."""
    cells: int
    """Capacity for `LlamaModel`."""
    layers: int
    """Layers on the device."""
    bytes: int
    """Bytes on the device while the model works."""


@dataclass(frozen=True, slots=True)
class Option:
    """One way of sharing the budget."""

    strategy: Strategy
    job: Job
    generator: Share
    verifier: Share | None
    bytes: int
    """Most bytes on the device at any time."""
    seconds: float
    """Least time for all paths, moves included."""
    why: str
