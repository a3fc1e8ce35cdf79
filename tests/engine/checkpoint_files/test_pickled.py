"""Pickled checkpoints: tensors are read, and nothing in them is ever run."""

from __future__ import annotations

import os
import pickle
import random
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from engine.checkpoints.pickled import open_pickle
from engine.checkpoints.tensors import values
from engine.errors import EngineError


class Touching:
    """When unpickled, makes a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self._path),)


@pytest.mark.parametrize("zipped", [True, False])
def test_tensors_are_read_from_both_kinds_of_pickle(tmp_path: Path, zipped: bool) -> None:
    torch = pytest.importorskip("torch")
    path = tmp_path / "a.bin"
    tensors = {"a": torch.arange(6.0).reshape(2, 3).bfloat16(), "b": torch.tensor(2.5)}
    torch.save(tensors, path, _use_new_zipfile_serialization=zipped)
    found = open_pickle(path)
    assert values(found["a"]).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert values(found["b"]).tolist() == 2.5
    assert found["a"].shape == (2, 3)


@pytest.mark.parametrize("kind", ["torch", "old torch", "plain"])
def test_code_in_a_pickle_is_refused_and_not_run(tmp_path: Path, kind: str) -> None:
    torch = pytest.importorskip("torch")
    path, proof = tmp_path / "a.bin", tmp_path / "proof"
    content = {"a": torch.ones(1), "b": Touching(proof)}
    if kind == "plain":
        path.write_bytes(pickle.dumps(content))
    else:
        torch.save(content, path, _use_new_zipfile_serialization=kind == "torch")
    with pytest.raises(EngineError, match=r"a\.bin is refused.*Nothing of it was run"):
        open_pickle(path)
    assert not proof.exists()


def test_what_is_no_dictionary_of_tensors_is_refused(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    for content in ([1, 2], {"a": 1}):
        torch.save(content, tmp_path / "a.bin")
        with pytest.raises(EngineError, match="holds no dictionary of tensors"):
            open_pickle(tmp_path / "a.bin")


@pytest.mark.parametrize("size", [0, 3, 60, 700])
def test_a_pickle_cut_short_is_refused(tmp_path: Path, size: int) -> None:
    torch = pytest.importorskip("torch")
    path = tmp_path / "a.bin"
    torch.save({"a": torch.ones(100)}, path)
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(EngineError, match=r"a\.bin is (cut short or damaged|refused)"):
        open_pickle(path)


@pytest.mark.parametrize("seed", range(3))
def test_a_pickle_with_bytes_changed_is_refused_or_read(tmp_path: Path, seed: int) -> None:
    torch = pytest.importorskip("torch")
    path = tmp_path / "a.bin"
    chance = random.Random(seed)
    for zipped in (True, False):
        torch.save(
            {"a": torch.ones(8), "b": torch.ones(2, 3)}, path, _use_new_zipfile_serialization=zipped
        )
        whole = path.read_bytes()
        for _ in range(60):
            broken = bytearray(whole)
            for _ in range(chance.randrange(1, 4)):
                broken[chance.randrange(len(broken))] = chance.randrange(256)
            path.write_bytes(broken)
            with suppress(EngineError):
                for tensor in open_pickle(path).values():
                    values(tensor)


@pytest.mark.parametrize("content", [b"version https://git-lfs.github.com/spec/v1\n", b"<html>"])
def test_what_stands_for_a_file_is_not_taken_for_code_alone(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.bin").write_bytes(content)
    with pytest.raises(EngineError, match=r"a\.bin is (cut short or )?(refused: it is )?damaged"):
        open_pickle(tmp_path / "a.bin")


@pytest.mark.parametrize("kind", ["sparse", "meta", "complex", "whole numbers"])
def test_tensors_that_are_no_plain_weights_are_refused(tmp_path: Path, kind: str) -> None:
    torch = pytest.importorskip("torch")
    tensor = {
        "sparse": lambda: torch.eye(3).to_sparse(),
        "meta": lambda: torch.empty(3, 3, device="meta"),
        "complex": lambda: torch.ones(3, 3, dtype=torch.complex64),
        "whole numbers": lambda: torch.ones(3, 3, dtype=torch.int64),
    }[kind]()
    torch.save({"a": tensor}, tmp_path / "a.bin")
    with pytest.raises(EngineError, match=r"The tensor a of a\.bin is of type .* no plain weights"):
        values(open_pickle(tmp_path / "a.bin")["a"])


def test_without_torch_a_pickle_is_refused_with_two_ways_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    (tmp_path / "a.bin").write_bytes(b"PK\x03\x04")
    with pytest.raises(EngineError, match="is a pickle, and only torch") as caught:
        open_pickle(tmp_path / "a.bin")
    assert "safetensors" in caught.value.advice
    assert "torch" in caught.value.advice
