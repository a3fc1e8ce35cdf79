"""A hub on loopback that everything in the test, subprocesses included, takes for the real one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import huggingface_hub
import pytest
from huggingface_hub import constants

from engine import seedling
from engine.places import own_catalogue
from tests.engine.hub.loopback import Hub, serving

OWNER, FILE = "someone/a-model", "a-model.gguf"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub that has the seedling's verifier as `FILE` of `OWNER`."""
    for name in ("HF_TOKEN", "HF_HUB_OFFLINE", "HF_HUB_CACHE", "HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "hf" / "token"))
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_TELEMETRY", True)
    huggingface_hub.close_session()
    with serving() as hub:
        hub.add(OWNER, FILE, seedling.verifier_path())
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        yield hub
    huggingface_hub.close_session()


def in_catalogue(
    id: str = "mine", role: str = "verifiers", file: str = f"hub:{OWNER}/{FILE}"
) -> None:
    """Give a file of the hub an id in the user's own catalogue."""
    path = own_catalogue()
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as own:
        own.write(f'[{role}.{id}]\nfile = "{file}"\nformat = "seedling"\n')
