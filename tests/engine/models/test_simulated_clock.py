"""Virtual time by hand calculation."""

from __future__ import annotations

import pytest

from engine.models.base import Span
from engine.models.simulated import SimulatedModel
from engine.models.simulated_clock import Device, Kernel, Shape, Timing, VirtualClock
from engine.models.simulated_text import Writer

SHAPE = Shape(
    layers=2, heads=4, kv_heads=1, head_size=8, body=1000, head=100, weights=2200, tied=True
)
SLOW_MEMORY = Device(memory=0, bandwidth=100.0, flops=1e12, link=1.0, overhead=0.5)
SLOW_ARITHMETIC = Device(memory=0, bandwidth=1e12, flops=1000.0, link=1.0, overhead=0.0)


def timing(device: Device, kernel: Kernel = "unified", batch: int = 512) -> Timing:
    return Timing(VirtualClock(), device, SHAPE, kernel, batch)


def test_sizes() -> None:
    assert SHAPE.cell_bytes == 2 * 1 * 8 * 2 * 2
    assert SHAPE.weights_read == 2200
    untied = Shape(2, 4, 1, 8, body=1000, head=100, weights=2400, tied=False)
    assert untied.weights_read == 2200


def test_memory_bound_work_takes_its_traffic() -> None:
    timed = timing(SLOW_MEMORY)
    timed.charge([(1, 10), (1, 20)], wanted=2, used=25)
    # The weights, 25 cells read and 2 written, 64 bytes each.
    assert timed.clock.now == pytest.approx(0.5 + (2200 + 27 * 64) / 100)


def test_paged_attention_reads_every_path_by_itself() -> None:
    timed = timing(SLOW_MEMORY, "paged")
    timed.charge([(1, 10), (1, 20)], wanted=2, used=25)
    assert timed.clock.now == pytest.approx(0.5 + (2200 + 32 * 64) / 100)


@pytest.mark.parametrize(("kernel", "pairs"), [("unified", 3 * 25), ("paged", 10 + 2 * 20)])
def test_arithmetic_bound_work_takes_its_operations(kernel: Kernel, pairs: int) -> None:
    timed = timing(SLOW_ARITHMETIC, kernel)
    timed.charge([(1, 10), (2, 20)], wanted=1, used=25)
    # Two products over all heads' widths for each token and cell.
    operations = 2 * (3 * 1000 + 100 + pairs * 2 * 4 * 8 * 2)
    assert timed.clock.now == pytest.approx(operations / 1000)


def test_more_than_a_batch_takes_several_passes() -> None:
    timed = timing(SLOW_MEMORY, batch=4)
    timed.charge([(9, 9)], wanted=0, used=9)
    assert timed.clock.now == pytest.approx(3 * 0.5 + (3 * (2200 + 9 * 64) + 9 * 64) / 100)


def test_models_share_a_clock_and_keep_their_own_time() -> None:
    clock = VirtualClock()
    timings = [Timing(clock, device, SHAPE) for device in (SLOW_MEMORY, SLOW_ARITHMETIC)]
    for each in timings:
        model = SimulatedModel(Writer(), capacity=100, paths=2, timing=each)
        model.forward([Span((0, 1), [6, 7])])
        model.forward([Span((0,), [8]), Span((1,), [9])])
    assert clock.now == pytest.approx(timings[0].busy + timings[1].busy)
    assert timings[0].tokens == timings[1].tokens == 4
