"""A download is a process: it can be left or killed at any moment, and the next goes on."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import time
from contextlib import aclosing
from pathlib import Path

import numpy as np
import psutil
import pytest

from engine import catalogue, seedling
from engine.checkpoints.safetensors import open_safetensors, write_safetensors
from engine.client.boot import python
from engine.client.pulling import Fetched, Progress, pull
from engine.errors import EngineError
from engine.hub import store
from engine.protocol.events import Trouble
from tests.engine.hub.fixtures import FILE, OWNER, hub, in_catalogue
from tests.engine.hub.giant import write_giant
from tests.engine.hub.loopback import Answer, Hub
from tests.engine.memory.test_foresee import QWEN_1_5B

__all__ = ["hub"]

pytestmark = pytest.mark.asyncio

SIZE = seedling.verifier_path().stat().st_size
PART = 1_000_000


async def messages(id: str = "mine", *, force: bool = False) -> list[Progress | Fetched]:
    return [message async for message in pull("verifier", id, force=force)]


async def test_a_model_is_pulled_with_progress_and_then_found_by_its_id(hub: Hub) -> None:
    in_catalogue()
    *progress, fetched = await messages()
    assert isinstance(fetched, Fetched)
    assert fetched.bytes == SIZE
    assert fetched.checked
    assert progress
    assert catalogue.verifier_file("mine", None)[0] == fetched.path
    assert all("/resolve/" in request.path for request in hub.requests)  # and nothing else is asked


async def test_leaving_ends_it_at_once_even_while_nothing_comes(hub: Hub) -> None:
    in_catalogue()
    hub.next(Answer(cut_after=PART), Answer(stall_after=PART))
    before = set(psutil.Process().children())
    async with aclosing(pull("verifier", "mine", force=True)) as progress:
        async for _ in progress:
            if hub.sent >= PART:
                break
        began = time.monotonic()
    assert time.monotonic() - began < 5
    assert set(psutil.Process().children()) <= before
    assert store.find(OWNER, FILE) is None


async def test_cancelling_ends_it_at_once(hub: Hub) -> None:
    in_catalogue()
    hub.next(Answer("HEAD", 302, {"Location": "/nowhere"}))
    task = asyncio.create_task(messages())
    await asyncio.sleep(0.2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_killed_in_the_middle_the_next_fetches_only_the_rest(hub: Hub) -> None:
    in_catalogue()
    hub.next(Answer(stall_after=PART))
    child = subprocess.Popen(
        python("engine.client.puller", "verifier", "mine", "--force"), stdout=subprocess.PIPE
    )
    part = store.partial(OWNER, FILE)
    while not part.exists() or part.stat().st_size < PART:
        time.sleep(0.02)
    os.kill(child.pid, signal.SIGKILL)
    child.communicate()
    assert store.find(OWNER, FILE) is None
    fetched = (await messages(force=True))[-1]
    assert isinstance(fetched, Fetched)
    assert fetched.bytes == SIZE - PART
    assert fetched.path.read_bytes() == seedling.verifier_path().read_bytes()


async def test_a_model_that_does_not_fit_is_refused_by_its_header_alone(
    hub: Hub, tmp_path: Path
) -> None:
    in_catalogue()
    write_giant(tmp_path / "giant.gguf")
    hub.add(OWNER, FILE, tmp_path / "giant.gguf", checksum="0" * 64)
    with pytest.raises(EngineError, match="'mine' was not downloaded") as caught:
        await messages()
    assert caught.value.trouble is Trouble.MEMORY
    assert caught.value.forcible
    with pytest.raises(EngineError, match="not enough room") as caught:  # of the disk
        await messages(force=True)
    assert caught.value.trouble is Trouble.STORAGE


async def test_what_goes_wrong_in_the_process_is_told(hub: Hub) -> None:
    in_catalogue()
    hub.next(Answer("HEAD", 401, {"X-Error-Code": "GatedRepo"}))
    with pytest.raises(EngineError, match="is gated"):
        await messages()
    with pytest.raises(EngineError, match="no verifier 'nobody'"):
        await messages("nobody")


async def test_what_is_here_by_other_means_is_fetched_at_once(hub: Hub) -> None:
    assert await messages("seedling") == [Fetched(seedling.verifier_path(), 0, checked=True)]


async def test_a_checkpoint_that_is_to_be_converted_is_pulled_as_a_folder(
    hub: Hub, tmp_path: Path
) -> None:
    in_catalogue(file="convert:someone/raw")
    (tmp_path / "config.json").write_text(json.dumps(QWEN_1_5B))
    write_safetensors(tmp_path / "model.safetensors", {"a": np.zeros(1000)}, {})
    for file in ("config.json", "model.safetensors"):
        hub.add("someone/raw", file, tmp_path / file)
    fetched = (await messages())[-1]
    assert isinstance(fetched, Fetched)
    assert fetched.path == store.stored("someone/raw", "")
    assert open_safetensors(fetched.path / "model.safetensors").tensors["a"].shape == (1000,)
