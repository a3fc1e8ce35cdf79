"""Models of known shape, without files."""

from __future__ import annotations

from engine.memory.devices import Device, Kind
from engine.memory.estimate import Facts
from engine.memory.options import Budget, Moving
from engine.memory.plan import budget_for
from engine.memory.roofline import Speed
from engine.memory.sizes import GIB

PROCESSOR = Speed(bandwidth=20e9, flops=200e9)


def qwen(name: str, size: int, parameters: int, width: int, heads: int, cached: int) -> Facts:
    """A Qwen2.5 of 28 layers with heads of 128."""
    return Facts(
        name=name,
        file=size,
        embedding=size // 6,
        on_device=size,
        layers=28,
        cell_values=28 * cached * 128 * 2,
        masks=1,
        width=width,
        heads=heads,
        inner=width * 35 // 6,
        queries=heads * 128,
        vocabulary=151936,
        merges=151387,
        parameters=parameters,
        trained_context=32768,
    )


SMALL = qwen("1.5B", 986_048_768, 1_540_000_000, 1536, 12, 2)
LARGE = qwen("7B", 4_683_074_240, 7_070_000_000, 3584, 28, 4)


def on(device: Device, size: int | None = None) -> Budget:
    """All of a device, or `size` bytes of it."""
    return budget_for(device, PROCESSOR, Moving(10e9, 10e9), device.free if size is None else size)


def ram(gib: float) -> Device:
    return Device("RAM", Kind.RAM, int(gib * GIB), int(gib * GIB))
