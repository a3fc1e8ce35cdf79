"""A model on the hub is known by its header: a plan of it needs no download."""

from __future__ import annotations

import os
import struct
from datetime import date
from pathlib import Path

import pytest

from engine import seedling
from engine.client.planning import Job, plan_for
from engine.errors import EngineError
from engine.hub import remote
from engine.hub.remote import header, look_up
from engine.models.gguf import read_header
from tests.engine.hub.fixtures import FILE, OWNER, in_catalogue
from tests.engine.hub.giant import write_giant
from tests.engine.hub.loopback import Answer, Hub


def test_the_hub_tells_size_and_checksum(hub: Hub) -> None:
    found = look_up(OWNER, FILE)
    assert found.size == seedling.verifier_path().stat().st_size
    assert len(found.checksum) == 64
    assert hub.sent == 0


def test_a_header_is_read_as_from_the_file_and_hardly_more_than_it_is_fetched(
    hub: Hub, tmp_path: Path
) -> None:
    write_giant(tmp_path / "giant.gguf")
    hub.add(OWNER, "giant.gguf", tmp_path / "giant.gguf", checksum="0" * 64)
    for file, path in (
        (FILE, seedling.verifier_path()),
        ("giant.gguf", tmp_path / "giant.gguf"),
    ):
        assert header(look_up(OWNER, file)) == read_header(path)
    asked = [request for request in hub.requests if request.method == "GET"]
    assert [request.range for request in asked] == ["bytes=0-2756351", "bytes=0-67108863"]


def test_a_server_that_knows_no_ranges_is_not_listened_to_for_longer_than_the_header(
    hub: Hub, tmp_path: Path
) -> None:
    write_giant(tmp_path / "giant.gguf")
    hub.add(OWNER, "giant.gguf", tmp_path / "giant.gguf", checksum="0" * 64)
    hub.next(Answer(whole=True))
    assert header(look_up(OWNER, "giant.gguf")).text("general.name") == "giant"
    assert hub.sent < 64 << 20


def test_a_plan_takes_a_model_that_is_not_here_as_one_that_is(hub: Hub) -> None:
    in_catalogue()
    in_catalogue("mine", "generators")
    there = plan_for("seedling", "mine", Job(), gpu="RTX 3060", limit=None)
    here = plan_for("seedling", "seedling", Job(), gpu="RTX 3060", limit=None)
    assert there.verifier == here.verifier
    assert there.plan == here.plan


def test_without_the_hub_a_plan_takes_what_it_told_last_and_says_so(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_catalogue()
    told = plan_for("seedling", "mine", Job(), gpu="RTX 3060", limit=None)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    kept = plan_for("seedling", "mine", Job(), gpu="RTX 3060", limit=None)
    assert kept.plan == told.plan
    assert kept.note.startswith(told.note)
    assert f"That was on {date.today().isoformat()}; now: " in kept.note
    assert "127.0.0.1:9 cannot be reached" in kept.note


def test_of_a_model_that_the_hub_has_never_told_of_no_size_is_made_up(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_catalogue()
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(EngineError, match="'mine' takes is not known: it is not on this") as found:
        plan_for("seedling", "mine", Job(), gpu="RTX 3060", limit=None)
    assert "cannot be reached" in found.value.message
    assert "a file that is here can be planned by its path" in found.value.advice


def test_what_is_no_model_is_told_by_its_first_bytes(hub: Hub, tmp_path: Path) -> None:
    page = tmp_path / "page"
    page.write_text("<html>" * 1000)
    hub.add(OWNER, FILE, page)
    with pytest.raises(EngineError, match="is not a GGUF model file"):
        header(look_up(OWNER, FILE))


def test_a_header_without_an_end_is_not_listened_to_for_ever(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "_HEADER", 1 << 20)
    endless = tmp_path / "endless.gguf"
    endless.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 1 << 60))
    os.truncate(endless, 1 << 40)  # keys without a name, for ever
    hub.add(OWNER, FILE, endless, checksum="0" * 64)
    hub.next(Answer(whole=True))
    with pytest.raises(EngineError, match="cut short or damaged"):
        header(look_up(OWNER, FILE))


def test_a_header_that_breaks_off_is_told(hub: Hub) -> None:
    hub.next(Answer(cut_after=10_000))
    with pytest.raises(EngineError, match="broke off"):
        header(look_up(OWNER, FILE))
