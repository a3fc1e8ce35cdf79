"""Downloads: resumed, checked, placed whole or not at all, and every failure told in its words."""

from __future__ import annotations

import errno
import os
import shutil
import threading
import time
from collections.abc import Callable
from io import FileIO
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from huggingface_hub import constants

from engine import seedling
from engine.errors import EngineError
from engine.hub import download as downloading
from engine.hub import store
from engine.hub.download import download
from engine.hub.messages import Fetched, Progress
from engine.protocol.events import Trouble
from tests.engine.hub.fixtures import FILE, OWNER
from tests.engine.hub.loopback import Answer, Hub

WHOLE = seedling.verifier_path().read_bytes()
PART = 1_000_000


def fetch(*waits: float, tell: Callable[[Progress], None] = lambda _: None) -> Fetched:
    """Download, with so many further tries."""
    return download(OWNER, FILE, tell, waits=waits)


def refused(*waits: float) -> EngineError:
    with pytest.raises(EngineError) as caught:
        fetch(*waits)
    return caught.value


def nothing_is_used() -> bool:
    return store.find(OWNER, FILE) is None


def test_a_file_is_fetched_whole_checked_and_placed_where_models_are(hub: Hub) -> None:
    told: list[Progress] = []
    fetched = fetch(tell=told.append)
    assert fetched == Fetched(store.stored(OWNER, FILE), len(WHOLE), checked=True)
    assert fetched.path.read_bytes() == WHOLE
    assert [p.done for p in told] == sorted(p.done for p in told)
    assert (told[-1].done, told[-1].total) == (len(WHOLE), len(WHOLE))
    assert store.find(OWNER, FILE) == fetched.path
    assert not store.partial(OWNER, FILE).exists()


def test_a_file_that_is_here_is_not_fetched_again(hub: Hub) -> None:
    fetch()
    before = len(hub.requests)
    assert fetch().bytes == 0
    assert len(hub.requests) == before


def test_a_broken_connection_is_taken_up_again_and_no_byte_is_sent_twice(hub: Hub) -> None:
    hub.next(Answer(cut_after=PART), Answer(cut_after=PART))
    told: list[Progress] = []
    fetched = fetch(0.0, tell=told.append)
    assert fetched.path.read_bytes() == WHOLE
    assert hub.sent == len(WHOLE)
    assert any("broke off" in progress.note for progress in told)


def test_what_came_before_an_interruption_is_gone_on_from(hub: Hub) -> None:
    hub.next(Answer(cut_after=PART))
    error = refused()
    assert "broke off" in error.message
    assert "that came are kept" in error.advice
    assert nothing_is_used()
    assert store.partial(OWNER, FILE).stat().st_size == PART
    assert fetch().bytes == len(WHOLE) - PART
    assert hub.sent == len(WHOLE)
    assert store.stored(OWNER, FILE).read_bytes() == WHOLE


def test_giving_up_keeps_what_came(hub: Hub) -> None:
    class EnoughError(Exception):
        pass

    def enough(progress: Progress) -> None:
        if progress.done >= PART:
            raise EnoughError

    with pytest.raises(EnoughError):
        fetch(tell=enough)
    kept = store.partial(OWNER, FILE).stat().st_size
    assert kept >= PART
    assert fetch().bytes == len(WHOLE) - kept


def test_wrong_bytes_are_refused_and_thrown_away(hub: Hub) -> None:
    hub.next(Answer(wrong=True))
    error = refused()
    assert error.trouble is Trouble.MODEL
    assert "other bytes than the hub's checksum is of" in error.message
    assert nothing_is_used()
    assert not store.partial(OWNER, FILE).exists()
    assert fetch().path.read_bytes() == WHOLE


def test_bytes_that_changed_on_disk_are_noticed(hub: Hub) -> None:
    hub.next(Answer(cut_after=PART))
    refused()
    with store.partial(OWNER, FILE).open("r+b") as file:
        file.write(b"\0" * 100)
    assert "other bytes" in refused().message
    assert nothing_is_used()


def test_what_is_no_model_is_refused_where_the_hub_has_no_checksum(
    hub: Hub, tmp_path: Path
) -> None:
    page = tmp_path / "page"
    page.write_text("<html>Please sign in</html>")
    hub.add(OWNER, FILE, page, checksum="of-a-mirror")
    assert "no whole GGUF" in refused().message
    assert nothing_is_used()


def test_a_small_file_is_checked_against_the_name_git_gives_it(hub: Hub, tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_bytes(b"{}\n")
    name = "0967ef424bce6791893e9a57bb952f80fd536e93"  # printf '{}\n' | git hash-object --stdin
    hub.add(OWNER, "config.json", config, checksum=name)
    assert download(OWNER, "config.json", lambda _: None).checked
    hub.add(OWNER, "other.json", config, checksum=name.replace("0", "1"))
    with pytest.raises(EngineError, match="other bytes"):
        download(OWNER, "other.json", lambda _: None)


def test_a_version_that_changed_meanwhile_is_begun_anew(hub: Hub, tmp_path: Path) -> None:
    hub.next(Answer(cut_after=PART))
    refused()
    other = seedling.generator_path()
    hub.add(OWNER, FILE, other)
    assert fetch().bytes == other.stat().st_size
    assert store.stored(OWNER, FILE).read_bytes() == other.read_bytes()


def test_the_same_file_in_another_commit_is_gone_on_with(hub: Hub) -> None:
    hub.next(Answer(cut_after=PART))
    refused()
    checksum = f'"{hub.checksums[OWNER, FILE]}"'
    headers = {"X-Linked-Size": str(len(WHOLE)), "X-Linked-Etag": checksum, "ETag": checksum}
    hub.next(Answer("HEAD", 200, headers | {"X-Repo-Commit": "f" * 40}))
    assert fetch().bytes == len(WHOLE) - PART


def test_a_server_that_knows_no_ranges_sends_all_of_it_again(hub: Hub) -> None:
    hub.next(Answer(cut_after=PART), Answer(whole=True))
    assert fetch(0.0).path.read_bytes() == WHOLE


def test_more_bytes_than_the_hub_told_of_are_refused(hub: Hub, tmp_path: Path) -> None:
    longer = tmp_path / "longer.gguf"
    longer.write_bytes(WHOLE + b"\0" * 5_000_000)
    hub.add(OWNER, FILE, longer)
    headers = {"X-Linked-Size": str(len(WHOLE)), "X-Linked-Etag": '"x"', "ETag": '"x"'}
    hub.next(Answer("HEAD", 200, headers))
    assert "more than" in refused().message
    assert nothing_is_used()


def test_a_redirect_is_followed_and_the_token_is_not_carried_along(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    hub.redirect_to = f"http://localhost:{hub.port}"
    assert fetch().path.read_bytes() == WHOLE
    tokens = {request.host.partition(":")[0]: request.token for request in hub.requests}
    assert tokens == {"127.0.0.1": "Bearer hf_secret", "localhost": None}


def test_what_the_hub_keeps_in_its_newer_store_comes_over_plain_http_too(hub: Hub) -> None:
    size, checksum = len(WHOLE), hub.checksums[OWNER, FILE]
    headers = {"X-Linked-Size": str(size), "X-Linked-Etag": f'"{checksum}"'}
    xet = {"X-Xet-Hash": "a" * 64, "X-Xet-Refresh-Route": "/api/xet", "X-Repo-Commit": "main"}
    hub.next(Answer("HEAD", 302, headers | xet | {"Location": "http://localhost:1/xet"}))
    assert fetch().path.read_bytes() == WHOLE
    assert not any("xet" in request.path for request in hub.requests)


class Case(NamedTuple):
    status: int
    headers: dict[str, str]
    message: str
    advice: str


@pytest.mark.parametrize(
    "case",
    [
        Case(401, {"X-Error-Code": "GatedRepo"}, "is gated", "Accept it at http://127.0.0.1:"),
        Case(403, {"X-Error-Code": "GatedRepo"}, "is gated", "sign in with 'hf auth login'"),
        Case(401, {"X-Error-Code": "RepoNotFound"}, "or it is private", "sign in with"),
        Case(401, {}, "does not accept who asks", "sign in with"),
        Case(403, {}, "forbids access", "The token may lack the right"),
        Case(404, {"X-Error-Code": "EntryNotFound"}, "There is no file a-model.gguf", "See http"),
        Case(404, {"X-Error-Code": "RepoNotFound"}, "There is no repository", "Check the name"),
        Case(404, {}, "has no a-model.gguf", "See http"),
        Case(429, {"Retry-After": "3600"}, "too many requests", "Try again in 3600 s."),
        Case(429, {}, "too many requests", "Wait a little"),
        Case(503, {}, "has trouble of its own (503)", "Wait a little"),
        Case(400, {}, "refused a-model.gguf of someone/a-model (400)", ""),
    ],
    ids=lambda case: f"{case.status}{'-'.join(['', *case.headers.values()])}",
)
def test_each_refusal_of_the_hub_is_told_in_its_own_words(hub: Hub, case: Case) -> None:
    hub.next(Answer("HEAD", case.status, case.headers))
    error = refused()
    assert error.trouble is Trouble.MODEL
    assert case.message in error.message
    assert case.advice in error.advice
    assert nothing_is_used()


def test_who_has_signed_in_is_told_to_look_at_the_token(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    hub.next(Answer("HEAD", 403, {"X-Error-Code": "GatedRepo"}))
    error = refused()
    assert "make sure that the token" in error.advice
    assert "hf_secret" not in error.message + error.advice


def test_a_hub_that_is_asked_too_often_is_waited_for_as_it_says(hub: Hub) -> None:
    hub.next(Answer(status=429, headers={"Retry-After": "0"}), Answer(status=503))
    told: list[Progress] = []
    assert fetch(60.0, 0.0, tell=told.append).path.read_bytes() == WHOLE
    assert any("too many requests" in progress.note for progress in told)
    assert any("trouble of its own" in progress.note for progress in told)


def test_a_hub_that_asks_for_an_hour_is_not_waited_for(hub: Hub) -> None:
    hub.next(Answer(status=429, headers={"Retry-After": "3600"}))
    assert "Try again in 3600 s." in refused(0.0).advice


def test_a_server_that_stalls_is_given_up_after_a_while_and_gone_on_from(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_DOWNLOAD_TIMEOUT", 0.3)
    hub.next(Answer(stall_after=PART))
    error = refused()
    assert "did not answer in time" in error.message
    assert fetch().bytes == len(WHOLE) - PART


def test_without_a_network_it_is_said_at_once(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.close()
    monkeypatch.setattr(hub, "close", lambda: None)
    error = refused(60.0)
    assert "cannot be reached: Connection refused" in error.message
    assert "HF_ENDPOINT" in error.advice


def test_offline_mode_asks_nobody(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert "HF_HUB_OFFLINE forbids" in refused().message
    assert hub.requests == []


def test_a_disk_without_room_is_told_before_anything_is_fetched(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1 << 20))
    error = refused()
    assert error.trouble is Trouble.STORAGE
    assert "3 MiB are still to come, and 1 MiB are free" in error.message
    assert "Make 66 MiB free" in error.advice
    assert hub.sent == 0


def test_a_disk_that_fills_up_on_the_way_keeps_what_came(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full(FileIO):
        def write(self, data: Any, /) -> int:
            room = PART - self.tell()
            if room <= 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return super().write(memoryview(data)[:room])  # what fits is written, as disks do

    with monkeypatch.context() as patch:
        patch.setattr(downloading, "FileIO", Full)
        error = refused(0.0)
    assert error.trouble is Trouble.STORAGE
    assert "The disk is full; what came of a-model.gguf is kept." in error.message
    assert nothing_is_used()
    assert store.partial(OWNER, FILE).stat().st_size == PART
    assert fetch().bytes == len(WHOLE) - PART


def test_two_at_once_fetch_it_once(hub: Hub) -> None:
    hub.next(Answer(stall_after=PART))
    results: list[Fetched] = []
    notes: list[str] = []
    first = threading.Thread(target=lambda: results.append(fetch(0.0)))
    second = threading.Thread(
        target=lambda: results.append(fetch(tell=lambda p: notes.append(p.note)))
    )
    first.start()
    while hub.sent < PART:
        time.sleep(0.01)
    second.start()
    while not any("under way" in note for note in notes):
        time.sleep(0.01)
    hub.closed.set()  # the first goes on
    first.join(20)
    second.join(20)
    assert sorted(result.bytes for result in results) == [0, len(WHOLE)]
    assert hub.sent == len(WHOLE)


def test_what_other_programs_have_in_their_cache_is_used_as_it_is(hub: Hub, tmp_path: Path) -> None:
    folder = tmp_path / "hf" / "hub" / "models--someone--a-model"
    (folder / "snapshots" / "abc").mkdir(parents=True)
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text("abc")
    shutil.copy(seedling.verifier_path(), folder / "snapshots" / "abc" / FILE)
    assert fetch().path == folder / "snapshots" / "abc" / FILE
    assert hub.requests == []
    assert store.remove(OWNER, FILE) == 0
    assert store.find(OWNER, FILE) is not None


def test_removing_leaves_nothing_behind(hub: Hub) -> None:
    path = fetch().path
    assert store.remove(OWNER, FILE) == len(WHOLE)
    assert not path.parent.parent.exists()
    hub.next(Answer(cut_after=PART))
    refused()
    assert store.remove(OWNER, FILE) == PART
