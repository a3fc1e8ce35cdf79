"""Files of tensors, whole ones and those that somebody tampered with."""

from __future__ import annotations

import struct
from pathlib import Path

import msgspec
import numpy as np
import pytest

from engine.checkpoints.safetensors import open_safetensors, write_safetensors
from engine.checkpoints.tensors import parts, values
from engine.errors import EngineError


def raw(path: Path, table: object, data: bytes = b"", *, length: int | None = None) -> Path:
    """A file with whatever table."""
    text = table if isinstance(table, bytes) else msgspec.json.encode(table)
    path.write_bytes(struct.pack("<Q", len(text) if length is None else length) + text + data)
    return path


def entry(dtype: str, shape: list[int], begin: int, end: int) -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    tensors = {"a": np.arange(12, dtype=np.float32).reshape(3, 4), "b": np.array([1.5], np.float32)}
    write_safetensors(path, tensors, {"format": "x"})
    found = open_safetensors(path)
    assert found.metadata == {"format": "x"}
    assert {name: values(t).tolist() for name, t in found.tensors.items()} == {
        name: array.tolist() for name, array in tensors.items()
    }


def test_every_kind_of_float_is_read(tmp_path: Path) -> None:
    wanted = [1.0, -2.5, 0.0, 3.140625]
    data = np.array(wanted, np.float32)
    half = (data.view(np.uint32) >> 16).astype("<u2").tobytes()
    contents = {
        "F64": data.astype("<f8").tobytes(),
        "F32": data.tobytes(),
        "F16": data.astype("<f2").tobytes(),
        "BF16": half,
    }
    for dtype, bytes in contents.items():
        table = {"t": entry(dtype, [2, 2], 0, len(bytes))}
        tensor = open_safetensors(raw(tmp_path / dtype, table, bytes)).tensors["t"]
        assert values(tensor).ravel().tolist() == wanted, dtype
        assert tensor.rows(1, 2).tolist() == [wanted[2:]]


def test_a_large_tensor_is_read_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.checkpoints.tensors._PART", 16)
    path = tmp_path / "a.safetensors"
    data = np.arange(40, dtype=np.float32).reshape(5, 8)
    write_safetensors(path, {"t": data}, {})
    found = list(parts(open_safetensors(path).tensors["t"]))
    assert [len(part) for part in found] == [2, 2, 1]
    assert np.concatenate(found).tolist() == data.tolist()


def test_integers_are_no_weights(tmp_path: Path) -> None:
    path = raw(tmp_path / "a", {"t": entry("I64", [1], 0, 8)}, bytes(8))
    with pytest.raises(EngineError, match="type I64, which holds no plain weights"):
        values(open_safetensors(path).tensors["t"])


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ({"t": entry("F32", [2], 0, 9000)}, "ends 8,992 bytes after the file"),
        ({"t": entry("F32", [3], 0, 8)}, "not as many bytes as its shape"),
        ({"t": entry("F32", [-2], 0, 8)}, "impossible shape"),
        ({"t": entry("F32", [2], 8, 0)}, "impossible shape or place"),
        ({"t": entry("F32", [2**62, 2**62], 0, 8)}, "not as many bytes"),
        ({"t": entry("X9", [2], 0, 8)}, "unknown type X9"),
        ({"t": [1, 2]}, "table of tensors cannot be read"),
        (b"not json", "table of tensors cannot be read"),
        (b"[" * 100_000, "table of tensors cannot be read"),
        (b"\xff\xfe{}", "table of tensors cannot be read"),
    ],
)
def test_a_table_that_does_not_fit_its_bytes_is_refused(
    tmp_path: Path, table: object, reason: str
) -> None:
    path = raw(tmp_path / "a.safetensors", table, bytes(8))
    with pytest.raises(EngineError, match=reason):
        open_safetensors(path)


@pytest.mark.parametrize("length", [1 << 40, (1 << 64) - 1, 100_000_001])
def test_an_absurd_length_is_refused_before_anything_is_read(tmp_path: Path, length: int) -> None:
    path = raw(tmp_path / "a.safetensors", {}, length=length)
    with pytest.raises(EngineError, match="cut short or damaged: its table would take"):
        open_safetensors(path)


def test_a_file_cut_anywhere_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    write_safetensors(path, {"t": np.ones(4, np.float32)}, {})
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(EngineError, match="cut short or damaged"):
            open_safetensors(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"There is no file .*x\.safetensors"):
        open_safetensors(tmp_path / "x.safetensors")
