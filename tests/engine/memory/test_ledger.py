"""Two engines share one memory: the second plans within what the first has left."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from engine.memory.devices import Kind
from engine.memory.ledger import Ledger, Promise, holders, outstanding
from engine.memory.sizes import GIB, MIB
from engine.memory.speed import named
from tests.engine.memory.shapes import ram

RAM = ram(16)
_OTHER = """
import sys, time
from pathlib import Path
from engine.memory.ledger import Ledger
ledger = Ledger(Path(sys.argv[1]))
with ledger.locked():
    print("locked", flush=True)
    time.sleep(float(sys.argv[2]))
    ledger.promise("RAM", 3 << 30, placed=False)
print("promised", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "state" / "promises.json")


@pytest.fixture
def other(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that has promised itself 3 GiB, having planned for a while."""
    process = subprocess.Popen(
        [sys.executable, "-c", _OTHER, str(tmp_path / "state" / "promises.json"), "0.5"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "locked\n"
    yield process
    process.kill()
    process.wait()


def test_what_another_process_promised_itself_is_seen(
    ledger: Ledger, other: subprocess.Popen[str]
) -> None:
    with ledger.locked():  # waits until the other has planned
        (found,) = ledger.others("RAM")
    assert (found.pid, found.bytes) == (other.pid, 3 * GIB)
    assert outstanding(found, RAM) > 3 * GIB - 100 * MIB  # it has taken hardly any of it
    assert f"process {other.pid} holds 3.0 GiB" in holders([found])


def test_a_process_that_ended_without_a_word_holds_nothing(
    ledger: Ledger, other: subprocess.Popen[str]
) -> None:
    assert other.stdout is not None
    assert other.stdout.readline() == "promised\n"
    assert ledger.others("RAM")
    other.kill()
    other.wait()
    assert ledger.others("RAM") == []


def test_a_number_that_was_given_to_another_process_is_not_mistaken(
    ledger: Ledger, tmp_path: Path
) -> None:
    parent = psutil.Process().ppid()
    stale = {
        "pid": parent,
        "started": time.time() - 1e6,
        "device": "RAM",
        "bytes": 1,
        "placed": True,
    }
    path = tmp_path / "state" / "promises.json"
    path.parent.mkdir()
    path.write_text(json.dumps([stale]))
    assert ledger.others("RAM") == []


def test_own_promises_are_no_one_elses_and_replace_each_other(
    ledger: Ledger, tmp_path: Path
) -> None:
    ledger.promise("RAM", 5, placed=False)
    ledger.promise("RAM", 7, placed=True)
    written = json.loads((tmp_path / "state" / "promises.json").read_bytes())
    assert [(one["bytes"], one["placed"]) for one in written] == [(7, True)]
    assert ledger.others("RAM") == []
    ledger.withdraw()
    assert json.loads((tmp_path / "state" / "promises.json").read_bytes()) == []


def test_on_a_gpu_what_was_loaded_is_counted_by_the_driver() -> None:
    gpu = named("RTX 4090")
    assert gpu.kind is Kind.GPU
    promise = Promise(1, 0.0, gpu.name, GIB)
    assert outstanding(promise, gpu) == GIB
    assert outstanding(Promise(1, 0.0, gpu.name, GIB, placed=True), gpu) == 0


def test_a_damaged_file_is_as_good_as_none(ledger: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "state" / "promises.json"
    path.parent.mkdir()
    path.write_bytes(b'[{"pid": 1')
    assert ledger.others("RAM") == []
    ledger.promise("RAM", 7, placed=True)
    assert json.loads(path.read_bytes())[0]["bytes"] == 7


def test_a_folder_that_cannot_be_written_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ledger = Ledger(tmp_path / "file" / "promises.json")
    with ledger.locked():
        ledger.promise("RAM", 7, placed=True)
    assert ledger.others("RAM") == []
