"""Presets: each is what a plan makes of the memory it is for, and the best of them is taken."""

from dataclasses import replace

import pytest

from engine import catalogue
from engine.catalogue.presets import suited
from engine.memory.devices import Device, Kind
from engine.memory.estimate import Facts
from engine.memory.options import Job, Moving
from engine.memory.plan import budget_for, make_plan
from engine.memory.roofline import Speed
from engine.memory.sizes import GIB, parse_size
from tests.engine.memory.shapes import LARGE, PROCESSOR, SMALL

SHAPES = {
    "qwen2.5-1.5b-instruct": replace(SMALL, file=1_117_320_736, on_device=1_117_320_736),
    "qwen2.5-7b-instruct": LARGE,
    "llama3.1-8b-prm-deepseek": Facts(
        name="8B",
        file=4_920_000_000,
        embedding=296_000_000,
        on_device=4_624_000_000,
        layers=32,
        cell_values=32 * 8 * 128 * 2,
        masks=1,
        width=4096,
        heads=32,
        inner=14336,
        queries=4096,
        vocabulary=128256,
        merges=280147,
        parameters=7_500_000_000,
        trained_context=131072,
    ),
}
SPEEDS = {
    Kind.GPU: Speed(bandwidth=500e9, flops=40e12),
    Kind.UNIFIED: Speed(bandwidth=100e9, flops=3.6e12),
    Kind.RAM: PROCESSOR,
}


def device(kind: Kind, free: int) -> Device:
    return Device(kind.value, kind, free + 2 * GIB, free, SPEEDS[kind], link=12e9)


@pytest.mark.parametrize("name", catalogue.load().presets)
def test_a_preset_fits_its_memory_as_it_says(name: str) -> None:
    preset = catalogue.load().presets[name]
    there = device(preset.device, parse_size(preset.free))
    budget = budget_for(there, PROCESSOR, Moving(10e9, 10e9))
    job = Job(preset.n, preset.width, preset.context, preset.cache)
    verifier = None if preset.verifier is None else SHAPES[preset.verifier]
    chosen = make_plan(SHAPES[preset.generator], verifier, job, budget).chosen
    assert chosen is not None
    assert chosen.strategy == preset.strategy
    assert chosen.job == job
    for share in filter(None, (chosen.generator, chosen.verifier)):
        assert share.paths * preset.width >= preset.n  # what goes on is never read again


@pytest.mark.parametrize(
    ("kind", "gib", "name"),
    [
        (Kind.GPU, 7.6, "gpu-8"),
        (Kind.GPU, 11.2, "gpu-12"),
        (Kind.GPU, 15.3, "gpu-16"),
        (Kind.GPU, 23.1, "gpu-24"),
        (Kind.UNIFIED, 11, "apple-16"),
        (Kind.UNIFIED, 23, "apple-32"),
        (Kind.RAM, 5.5, "cpu-8"),
        (Kind.RAM, 13, "cpu-16"),
        (Kind.RAM, 28, "cpu-32"),
    ],
)
def test_the_largest_that_the_free_memory_holds_is_suggested(
    kind: Kind, gib: float, name: str
) -> None:
    found = suited(catalogue.load(), device(kind, int(gib * GIB)))
    assert found is not None
    assert found[0] == name


def test_a_full_card_is_given_what_its_free_memory_holds_not_what_its_name_promises() -> None:
    found = suited(catalogue.load(), replace(device(Kind.GPU, 8 * GIB), name="RTX 4090"))
    assert found is not None
    assert found[0] == "gpu-8"
    assert suited(catalogue.load(), device(Kind.GPU, 3 * GIB)) is None
