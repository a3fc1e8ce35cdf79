"""Reading the header of a model file: whatever is in the file, only EngineError comes out."""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine import seedling
from engine.errors import EngineError
from engine.models.gguf import Header, read_header
from engine.protocol.events import Trouble

WHOLE = seedling.generator_path().read_bytes()
HEAD = WHOLE[: read_header(seedling.generator_path()).data_start]


def refused(path: Path) -> str:
    """The message with which a file is refused."""
    with pytest.raises(EngineError) as caught:
        read_header(path)
    assert caught.value.trouble is Trouble.MODEL
    return caught.value.message


def read(folder: Path, data: bytes) -> Header:
    path = folder / "model.gguf"
    path.write_bytes(data)
    return read_header(path)


def with_metadata(*entries: bytes) -> bytes:
    return struct.pack("<4sIQQ", b"GGUF", 3, 0, len(entries)) + b"".join(entries)


def entry(key: bytes, kind: int, value: bytes) -> bytes:
    return struct.pack("<Q", len(key)) + key + struct.pack("<I", kind) + value


def test_a_whole_file_tells_its_metadata_and_tensors() -> None:
    header = read_header(seedling.generator_path())
    assert header.text("general.architecture") == "llama"
    embedding = next(t for t in header.tensors if t.name == "token_embd.weight")
    assert header.metadata["tokenizer.ggml.tokens"] == embedding.shape[1]
    last = max(header.tensors, key=lambda tensor: tensor.offset)
    assert last.nbytes is not None
    assert header.data_start + last.offset + last.nbytes == len(WHOLE)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert "no model file" in refused(tmp_path / "gone.gguf")


def test_a_folder_is_refused(tmp_path: Path) -> None:
    assert "is a folder" in refused(tmp_path)


@pytest.mark.skipif(os.name == "nt", reason="no named pipes")
def test_a_pipe_is_refused_without_waiting_for_a_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.gguf")
    assert "device or pipe" in refused(tmp_path / "pipe.gguf")


def test_a_file_that_may_not_be_read_is_refused_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def deny(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    path = tmp_path / "model.gguf"
    path.write_bytes(WHOLE)
    monkeypatch.setattr(Path, "open", deny)
    assert "Permission denied" in refused(path)


@pytest.mark.parametrize("name", ["a\0b.gguf", "x" * 300 + ".gguf", "file/model.gguf"])
def test_an_impossible_path_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_bytes(b"")
    refused(tmp_path / name)


@pytest.mark.parametrize("data", [b"", b"GG", b"hello, world", b"\0" * 4096, b"PK\x03\x04"])
def test_other_files_are_called_not_gguf(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "model.gguf").write_bytes(data)
    assert "not a GGUF" in refused(tmp_path / "model.gguf")


def test_a_file_cut_anywhere_is_called_cut_short(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    lengths = {*range(4, len(HEAD), 97), len(HEAD), len(HEAD) + 1, len(WHOLE) // 2, len(WHOLE) - 1}
    for length in sorted(lengths, reverse=True):
        path.write_bytes(WHOLE[:length])
        assert "cut short" in refused(path)
        assert f"{length:,} bytes" in refused(path)


@pytest.mark.parametrize(
    "data",
    [
        with_metadata(entry(b"k", 9, struct.pack("<IQ", 4, 1 << 63))),
        with_metadata(entry(b"k", 9, struct.pack("<IQ", 8, 1 << 63))),
        with_metadata(entry(b"k", 9, struct.pack("<IQ", 9, 1) * 5000)),
        with_metadata(entry(b"k", 8, struct.pack("<Q", 1 << 40))),
        with_metadata(entry(b"k", 77, b"")),
        with_metadata(entry(b"general.alignment", 8, struct.pack("<Q", 2) + b"32")),
        with_metadata(entry(b"general.alignment", 6, struct.pack("<f", float("nan")))),
        with_metadata(entry(b"general.alignment", 4, struct.pack("<I", 0))),
        struct.pack("<4sIQQ", b"GGUF", 3, 1 << 60, 0),
        struct.pack("<4sIQQ", b"GGUF", 3, 0, 1 << 60),
        struct.pack(">4sIQQ", b"GGUF", 3, 0, 0),
    ],
)
def test_lengths_that_cannot_be_are_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(EngineError, match="cut short or damaged"):
        read(tmp_path, data)


def test_metadata_of_the_wrong_type_reads_as_absent(tmp_path: Path) -> None:
    header = read(
        tmp_path,
        with_metadata(
            entry(b"text", 4, struct.pack("<I", 7)),
            entry(b"number", 6, struct.pack("<f", float("inf"))),
        ),
    )
    assert header.text("text", "none") == "none"
    assert header.number("number", 3) == 3


@settings(
    max_examples=200, deadline=2000, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    start=st.integers(0, len(HEAD) - 1),
    change=st.binary(min_size=1, max_size=24),
    end=st.integers(24, len(HEAD)),
)
def test_a_header_with_any_bytes_changed_is_read_or_refused(
    tmp_path: Path, start: int, change: bytes, end: int
) -> None:
    data = bytearray(HEAD[:end])
    data[start : start + len(change)] = change
    with suppress(EngineError):
        read(tmp_path, bytes(data))


@settings(
    max_examples=100, deadline=2000, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.binary(max_size=400))
def test_any_bytes_after_the_magic_are_read_or_refused(tmp_path: Path, data: bytes) -> None:
    with suppress(EngineError):
        read(tmp_path, b"GGUF\x03\0\0\0" + data)
