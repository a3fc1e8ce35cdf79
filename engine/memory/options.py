"""The words of a plan: what is asked, what may be used, and one way of sharing it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from engine.memory.devices import Device
from engine.memory.estimate import CacheType
from engine.memory.roofline import Speed

MARKERS = 64
"""Positions of a batch at which a verifier is read, at least."""
DEFAULT_CONTEXT = 2048
"""Tokens of the longest path of a search that asks for no others."""
HEAD_MARKERS = 256
"""The same where a head reads hidden states, tokens then: llama.cpp makes room for the logits of
each of them, 0.6 MB with a vocabulary of 150,000."""


class Strategy(StrEnum):
    """In those called idle, the models take turns and the one that waits makes room."""

    COLLOCATED = "collocated"
    IDLE_CACHE = "idle cache to host"
    IDLE_MODEL = "idle model to host"
    IDLE_AGAIN = "idle model away, its cache computed again"
    FEWER_LAYERS = "fewer layers on the GPU"
    SMALLER_N = "smaller n"
    SMALLER_CONTEXT = "smaller context"


@dataclass(frozen=True, slots=True)
class Job:
    """What is asked of the models."""

    n: int = 8
    width: int = 4
    context: int = DEFAULT_CONTEXT
    """Tokens of the longest path."""
    cache: CacheType = CacheType.F16
    markers: int = MARKERS
    """Positions of a batch at which the verifier is read, at least."""
    outputs: int = 0
    """The same of the generator, which is read on every path; more where it scores."""
    precise: bool = False
    """Whether the generator, on a processor, sums attention in 32 bits: it scores, and no search
    has to find the same bits. Takes a cache of 16 bits."""
    verifier_keeps: bool = True
    """Whether the verifier keeps what it has read for its next pass."""


@dataclass(frozen=True, slots=True)
class Moving:
    """Bytes a second at which a model that was away comes back."""

    fresh: float
    """Into memory that the process did not have, or over the link to a GPU."""
    mapped: float
    """From a file whose pages the system has, or over that link."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Where the models may be, and how fast that is."""

    device: Device
    bytes: int
    """What may be used of the device; the margin is already taken off."""
    speed: Speed
    host: Speed
    """The processor, which computes the layers that are not on a GPU."""
    moving: Moving | None
    """None where unknown."""
    limited: bool = False
    """Whether `bytes` is what the user allows."""


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
    moved: int = 0
    """Where models take turns: bytes to move for this one to leave and come back."""
    turns: float = 0.0
    """Seconds that both take."""


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
    turn: float = 0.0
    """Seconds that it takes to send one model away and have the other back."""
