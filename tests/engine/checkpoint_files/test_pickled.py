"""Pickled checkpoints: tensors are read, and nothing in them is ever run."""

from __future__ import annotations

import os
import pickle
import sys
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


def test_without_torch_a_pickle_is_refused_with_two_ways_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    (tmp_path / "a.bin").write_bytes(b"PK\x03\x04")
    with pytest.raises(EngineError, match="is a pickle, and only torch") as caught:
        open_pickle(tmp_path / "a.bin")
    assert "safetensors" in caught.value.advice
    assert "torch" in caught.value.advice
