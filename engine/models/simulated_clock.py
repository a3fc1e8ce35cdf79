"""Virtual time: what a computation would take on a named GPU, by its roofline.

A forward pass takes the longer of its arithmetic at the device's peak rate and its memory traffic
at the device's peak bandwidth (Williams et al., CACM 52(4), 2009; the cost model of FastTTS's
allocator as well), plus a fixed time for the call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Kernel = Literal["unified", "paged"]
"""How attention reads a cache that many rows share.

`unified`: one pass over all cells in use serves every row, and computes every row with every cell,
masked or not. This is how llama.cpp attends over one unified cache.
`paged`: each sequence reads the cells of its own path, shared or not. This is how vLLM's paged
attention, on which FastTTS and SpecScale were measured, attends.
"""

_VALUE = 2
"""Bytes of a cached value (f16)."""
_MULTIPLY_ADD = 2
"""Floating-point operations of a multiplication and an addition."""


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU by its data sheet."""

    memory: int
    """Bytes."""
    bandwidth: float
    """Bytes a second of its memory."""
    flops: float
    """Dense f16 operations a second with f32 accumulation."""
    link: float
    """Bytes a second to and from the host."""
    overhead: float
    """Seconds a forward pass takes however small it is."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The size of a transformer with grouped-query attention."""

    layers: int
    heads: int
    kv_heads: int
    head_size: int
    body: int
    """Parameters without embeddings: each is used once a token."""
    head: int
    """Parameters of the output head: each is used once a position whose logits are wanted."""
    weights: int
    """Bytes of everything that is resident, input embeddings included."""
    tied: bool
    """Whether the input embeddings are the output head."""

    @property
    def cell_bytes(self) -> int:
        """Bytes of one KV cell."""
        return self.layers * self.kv_heads * self.head_size * 2 * _VALUE

    @property
    def weights_read(self) -> float:
        """Bytes of weights a forward pass reads: all but untied input embeddings."""
        used = self.body + self.head
        return self.weights * used / (used if self.tied else used + self.head)


@dataclass(slots=True)
class VirtualClock:
    """The time that the models of one simulation share, in seconds."""

    now: float = 0.0


@dataclass(slots=True)
class Timing:
    """Advances the clock for one model's work on a device.

    Args:
        batch: tokens one pass takes at most; more are computed in several.
    """

    clock: VirtualClock
    device: Device
    shape: Shape
    kernel: Kernel = "unified"
    batch: int = 512
    busy: float = 0.0
    """Seconds spent so far."""
    tokens: int = 0
    """Tokens computed so far."""

    def charge(self, spans: Sequence[tuple[int, int]], wanted: int, used: int) -> None:
        """Account for one forward call.

        Args:
            spans: of each sequence its new tokens and its length afterwards.
            wanted: positions whose logits are read.
            used: cells in use afterwards.
        """
        device, shape = self.device, self.shape
        tokens = sum(new for new, _ in spans)
        if self.kernel == "unified":
            read, pairs = used, used * tokens
        else:
            read = sum(length for _, length in spans)
            pairs = sum(new * length for new, length in spans)
        passes = -(-tokens // self.batch)
        attention = 2 * shape.layers * shape.heads * shape.head_size * pairs  # scores, then values
        operations = _MULTIPLY_ADD * (shape.body * tokens + shape.head * wanted + attention)
        traffic = passes * (shape.weights_read + shape.cell_bytes * read)
        traffic += shape.cell_bytes * tokens
        seconds = max(operations / device.flops, traffic / device.bandwidth)
        seconds += passes * device.overhead
        self.tokens += tokens
        self.busy += seconds
        self.clock.now += seconds

    def transfer(self, bytes: int) -> None:
        """Account for moving bytes between the device and the host."""
        seconds = bytes / self.device.link
        self.busy += seconds
        self.clock.now += seconds
