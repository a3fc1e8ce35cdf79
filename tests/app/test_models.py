"""`sapwood models`: from a list to a file on this machine, and back."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from engine import seedling
from engine.checkpoints.safetensors import write_safetensors
from engine.hub import store
from tests.app.conftest import Sapwood
from tests.engine.hub.fixtures import FILE, OWNER, hub, in_catalogue
from tests.engine.hub.loopback import Answer, Hub
from tests.engine.memory.test_foresee import QWEN_1_5B

__all__ = ["hub"]
PART = 1_000_000


def rows(out: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in out.splitlines()]


def test_the_list_tells_what_is_here_and_what_suits_the_machine(sapwood: Sapwood) -> None:
    ran = sapwood("models")
    assert ran.code == 0
    assert "seedling                        verifier   here         3 MiB" in ran.out
    assert "qwen2.5-1.5b-instruct           generator  to download" in ran.out
    assert "qwen2.5-math-prm-7b             verifier   to convert" in ran.out
    assert "free" in ran.err
    listed = {row["id"]: row for row in rows(sapwood("models", "list", "--json").out)}
    assert listed["qwen3-4b"]["repository"] == "Qwen/Qwen3-4B-GGUF"


def test_one_model_is_shown_with_all_that_is_known_of_it(sapwood: Sapwood) -> None:
    ran = sapwood("models", "show", "llama3.1-8b-prm-deepseek")
    assert "licence     Llama 3.1 Community License" in ran.out
    assert "format      rlhflow" in ran.out
    assert sapwood("models", "show", "nobody").code == 2


def test_the_folders_are_told(sapwood: Sapwood, home: Path) -> None:
    assert json.loads(sapwood("models", "where", "--json").out)["models"] == str(home / "models")
    assert str(home / "models.toml") in sapwood("models", "where").out


def test_a_model_is_pulled_checked_used_and_removed(sapwood: Sapwood, hub: Hub) -> None:
    in_catalogue()
    pulled = sapwood("models", "pull", "mine")
    assert pulled.code == 0
    path = store.stored(OWNER, FILE)
    assert pulled.err.endswith(f"mine is here, its checksum is right: {path}\n")
    assert "is here already" in sapwood("models", "pull", "mine").err
    assert f"checksum {hub.checksums[OWNER, FILE]}" in sapwood("models", "verify", "mine").out
    assert sapwood("plan", "--verifier", "mine").code == 0
    removed = sapwood("models", "remove", "mine")
    assert removed.err == "Removed mine, 3 MiB.\n"
    assert not path.exists()
    assert sapwood("models", "remove", "mine").err == "Nothing was there.\n"


def test_json_has_the_progress_and_the_end_as_objects(sapwood: Sapwood, hub: Hub) -> None:
    in_catalogue()
    *progress, last = rows(sapwood("models", "pull", "mine", "--json").out)
    assert {row["type"] for row in progress} == {"progress"}
    assert (last["type"], last["id"], last["checked"]) == ("fetched", "mine", True)


def test_a_file_that_was_damaged_since_is_found_out(sapwood: Sapwood, hub: Hub) -> None:
    in_catalogue()
    sapwood("models", "pull", "mine")
    with store.stored(OWNER, FILE).open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"\xff")
    ran = sapwood("models", "verify")
    assert ran.code == 3
    assert "is damaged" in ran.err
    assert "sapwood models remove mine" in ran.err


def test_what_is_not_sapwoods_is_never_removed(sapwood: Sapwood) -> None:
    ran = sapwood("models", "remove", "seedling")
    assert ran.code == 2
    assert "it stays" in ran.err
    assert seedling.generator_path().is_file()


def test_weights_that_were_pulled_for_a_conversion_are_told_and_removed(
    sapwood: Sapwood, hub: Hub, tmp_path: Path
) -> None:
    in_catalogue(file="convert:someone/raw")
    write_safetensors(tmp_path / "model.safetensors", {"a": np.zeros(1 << 20)}, {})
    (tmp_path / "config.json").write_text(json.dumps(QWEN_1_5B))
    for file in ("config.json", "model.safetensors"):
        hub.add("someone/raw", file, tmp_path / file)
    assert "mine: its weights are here" in sapwood("models", "pull", "mine").err
    assert "to convert   4 MiB" in sapwood("models").out
    assert sapwood("models", "remove", "mine").err == "Removed mine, 4 MiB.\n"
    assert not store.stored("someone/raw", "").exists()


def test_a_gated_model_is_explained_and_no_token_is_told(
    sapwood: Sapwood, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_catalogue()
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    hub.next(Answer("HEAD", 403, {"X-Error-Code": "GatedRepo"}))
    ran = sapwood("models", "pull", "mine")
    assert ran.code == 3
    assert "someone/a-model is gated" in ran.err
    assert f"Accept it at {hub.address}/someone/a-model" in ran.err
    assert hub.requests[-1].token == "Bearer hf_secret"
    assert "hf_secret" not in ran.err + ran.out


def test_ctrl_c_stops_at_once_and_the_next_pull_goes_on(sapwood: Sapwood, hub: Hub) -> None:
    in_catalogue()
    hub.next(Answer(stall_after=PART))
    running = subprocess.Popen(
        [sys.executable, "-m", "app.cli", "models", "pull", "mine", "--force"],
        stderr=subprocess.PIPE,
        text=True,
    )
    part = store.partial(OWNER, FILE)
    while not part.exists() or part.stat().st_size < PART:
        time.sleep(0.02)
    asked = time.monotonic()
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=10)
    assert time.monotonic() - asked < 5
    assert running.returncode == 4
    assert "Stopped. What came is kept" in said
    assert "partly here" in sapwood("models").out
    assert sapwood("models", "pull", "mine").code == 0
    assert hub.requests[-1].range == f"bytes={PART}-"


def test_a_mistake_in_the_own_catalogue_is_told_with_its_line(sapwood: Sapwood) -> None:
    in_catalogue(role="generator")
    ran = sapwood("models")
    assert ran.code == 2
    assert "models.toml, line 1: generator: there are only" in ran.err
