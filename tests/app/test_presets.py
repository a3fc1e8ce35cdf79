"""`--preset`: models and settings of the catalogue, by name or by what is free."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.client import models, presets
from engine.memory.devices import Device, Kind
from engine.memory.sizes import GIB
from tests.app.conftest import Sapwood

MINE = """
[presets.mine]
device = "ram"
free = "{free}"
generator = "seedling"
verifier = "seedling"
cache = "q8_0"
n = 6
width = 3
context = 512
"""

Free = Callable[[float], None]


@pytest.fixture(autouse=True)
def mine(home: Path) -> None:
    """A preset of the user's own, whose models are here."""
    home.mkdir()
    (home / "models.toml").write_text(MINE.format(free="1G"))


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> Free:
    def set(gib: float) -> None:
        device = Device("RAM", Kind.RAM, 32 * GIB, int(gib * GIB))
        monkeypatch.setattr(presets, "own_device", lambda: (device, ""))

    return set


def test_a_preset_stands_for_models_and_settings(sapwood: Sapwood) -> None:
    (request,) = sapwood("solve", "--preset", "mine", "x").requests
    assert (request.generator, request.verifier) == ("seedling", "seedling")
    assert (request.search.n, request.search.width, request.context) == (6, 3, 512)
    assert (request.cache, request.search.policy) == ("q8_0", "beam")


def test_what_is_given_besides_counts_more(sapwood: Sapwood) -> None:
    (request,) = sapwood("solve", "--preset", "mine", "--n", "9", "--cache", "f16", "x").requests
    assert (request.search.n, request.search.width, request.cache) == (9, 3, "f16")


def test_auto_takes_the_one_for_what_is_free(sapwood: Sapwood, free: Free) -> None:
    free(2)
    (request,) = sapwood("solve", "--preset", "auto", "x").requests
    assert request.search.n == 6


@pytest.mark.parametrize(
    ("gib", "told"),
    [
        (22.6, "22.6 GiB of RAM are free, as measured now; the preset cpu-32 needs 20.0 GiB: "),
        (19.9, "19.9 GiB of RAM are free, as measured now; the preset cpu-16 needs 11.0 GiB: "),
        (0.5, "Too little memory is free for any preset"),
    ],
)
def test_what_is_suggested_is_what_the_measured_free_memory_has_room_for(
    sapwood: Sapwood, monkeypatch: pytest.MonkeyPatch, gib: float, told: str
) -> None:
    device = Device("RAM", Kind.RAM, int(23.5 * GIB), int(gib * GIB))
    monkeypatch.setattr(models, "own_device", lambda: (device, ""))
    assert told in sapwood("models").err


def test_a_plan_of_a_preset_whose_models_are_out_of_reach_tells_what_the_catalogue_says(
    sapwood: Sapwood, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    ran = sapwood("plan", "--preset", "cpu-16")
    assert (ran.code, ran.out) == (3, "")
    assert "'qwen2.5-1.5b-instruct' takes is not known" in ran.err
    assert "the preset cpu-16 as it stands needs 11.0 GiB of free memory" in ran.err


def test_where_too_little_is_free_auto_says_so(sapwood: Sapwood, free: Free) -> None:
    free(0.5)
    ran = sapwood("solve", "--preset", "auto", "x")
    assert ran.code == 5
    assert ran.requests == []
    assert "No preset is made for so little: 512 MiB are free of RAM." in ran.err


def test_models_that_are_not_here_are_named_with_the_command_that_gets_them(
    sapwood: Sapwood, free: Free
) -> None:
    for name in ("cpu-16", "auto"):
        free(13)
        ran = sapwood("solve", "--preset", name, "x")
        assert ran.code == 3
        assert ran.requests == []
        assert "sapwood models pull qwen2.5-1.5b-instruct llama3.1-8b-prm-deepseek" in ran.err


def test_an_unknown_name_is_told_with_those_there_are(sapwood: Sapwood) -> None:
    ran = sapwood("solve", "--preset", "gpu-9", "x")
    assert ran.code == 2
    assert "There is no preset 'gpu-9'. There are gpu-8, " in ran.err


def test_a_plan_can_be_of_a_preset(sapwood: Sapwood) -> None:
    ran = sapwood("plan", "--preset", "mine", "--gpu", "RTX 4090", "--json")
    job = json.loads(ran.out)["plan"]["job"]
    assert (job["n"], job["width"], job["context"], job["cache"]) == (6, 3, 512, "q8_0")
