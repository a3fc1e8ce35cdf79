"""A conversion is a process: whatever ends it, a file is whole in its place or not there."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from engine import catalogue
from engine.client.converting import Converted, Converting, convert
from engine.errors import EngineError
from engine.places import converted_dir
from engine.protocol.events import Trouble

if TYPE_CHECKING:
    from tests.engine.checkpoints import Family

pytestmark = pytest.mark.asyncio


@pytest.fixture
def folder(checkpoint: Callable[[Family], Path], tmp_path: Path) -> Path:
    """A small checkpoint named as the one of the catalogue whose format it has."""
    return Path(
        shutil.copytree(
            checkpoint("math-shepherd"), tmp_path / "math-shepherd-mistral-7b-prm", symlinks=True
        )
    )


async def test_a_checkpoint_the_catalogue_knows_is_found_by_its_id_when_converted(
    folder: Path,
) -> None:
    *progress, made = [message async for message in convert(folder, "q8_0")]
    assert isinstance(made, Converted)
    assert made.format == "math-shepherd"
    assert {m.doing for m in progress if isinstance(m, Converting)} == {"writing", "checking"}
    path, format = catalogue.verifier_file("math-shepherd-mistral-7b", None)
    assert str(path) == made.body
    assert format.name == "math-shepherd"
    assert list(converted_dir().iterdir()) == [path]


async def test_a_conversion_that_is_left_leaves_nothing_behind(folder: Path) -> None:
    before = psutil.Process().children()  # of other tests
    async with aclosing(convert(folder, "q4_k_m")) as messages:
        async for _ in messages:
            break
    assert list(converted_dir().iterdir()) == []
    assert [child for child in psutil.Process().children() if child not in before] == []


async def test_a_killed_conversion_is_told_and_leaves_nothing_behind(folder: Path) -> None:
    before = psutil.Process().children()

    async def killed() -> None:
        async for _ in convert(folder, "q4_k_m"):
            for child in psutil.Process().children():
                if child not in before:
                    child.kill()

    with pytest.raises(EngineError, match="The process that converts was lost: it was killed"):
        await killed()
    assert list(converted_dir().iterdir()) == []


async def test_what_is_there_is_never_written_over(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "x.gguf"
    out.write_text("mine")
    with pytest.raises(EngineError, match="is there already") as caught:
        await anext(convert(folder, "f16", out=out))
    assert caught.value.trouble is Trouble.USAGE
    assert out.read_text() == "mine"
    with pytest.raises(EngineError, match=r"does not end in \.gguf"):
        await anext(convert(folder, "f16", out=tmp_path / "x.bin"))


async def test_a_second_conversion_to_the_same_place_waits_for_nobody(
    folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "x.gguf"
    async with aclosing(convert(folder, "q4_k_m", out=out)) as messages:
        await anext(messages)
        with pytest.raises(EngineError, match="another conversion right now"):
            await anext(convert(folder, "q4_k_m", out=out))


async def test_what_a_power_cut_left_goes_with_the_next_conversion(
    folder: Path, tmp_path: Path
) -> None:
    left = tmp_path / ".x.gguf.part"
    left.mkdir()
    (left / "body").write_bytes(bytes(100))
    out = tmp_path / "x.gguf"
    async with asyncio.timeout(60):
        async for _ in convert(folder, "f16", out=out):
            pass
    assert out.is_file()
    assert not left.exists()


async def test_a_place_that_cannot_be_written_is_told(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EngineError, match="cannot be written") as caught:
        await anext(convert(folder, "f16", out=tmp_path / "file" / "x.gguf"))
    assert caught.value.trouble is Trouble.STORAGE
