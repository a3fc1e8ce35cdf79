"""A checkpoint's folder as the Hugging Face hub has it: a config, and weights in one file or many.

Safetensors are taken before pickles where both are there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from engine.checkpoints.pickled import open_pickle
from engine.checkpoints.safetensors import open_safetensors
from engine.checkpoints.tensors import StoredTensor, missing_text
from engine.errors import EngineError
from engine.protocol.events import Trouble

T = TypeVar("T")

_INDEXES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
_WHOLE = ("model.safetensors", "pytorch_model.bin")
_HEAD = "reward_head.pt"
"""A head beside a plain body (ReasonFlux-PRM-1.5B)."""


class _Index(msgspec.Struct):
    weight_map: dict[str, str]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A folder whose files are all there."""

    folder: Path
    config: dict[str, object]
    tensors: Mapping[str, StoredTensor]
    head_file: Path | None
    """A file of its own for the head."""


def open_checkpoint(folder: Path) -> Checkpoint:
    """Open a checkpoint; no weight is read yet.

    Raises:
        EngineError: it is no such folder, or a file of it is missing or damaged.
    """
    config = read_json(folder, "config.json", dict[str, object])
    head = folder / _HEAD
    return Checkpoint(folder, config, _tensors(folder), head if head.is_file() else None)


def checkpoint_name(folder: Path) -> str:
    """The name of the repository that a folder came from, be it a copy or the hub's own cache."""
    folder = folder.resolve()
    for part in folder.parts:
        if part.startswith("models--"):
            return part.rpartition("--")[2]
    return folder.name


def read_json(folder: Path, name: str, kind: type[T]) -> T:
    """A JSON file of the folder.

    Raises:
        EngineError: it is missing or not what it should be.
    """
    path = folder / name
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        raise EngineError(
            Trouble.MODEL,
            f"{folder} is no checkpoint: there is no {name} in it.",
            "Name the folder with all the files of the model's repository.",
        ) from None
    except NotADirectoryError:
        raise EngineError(
            Trouble.MODEL, f"{folder} is a file.", "Name the folder that the checkpoint is in."
        ) from None
    except OSError as error:
        raise EngineError(Trouble.MODEL, f"{path} cannot be read: {error.strerror}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise EngineError(
            Trouble.MODEL, f"{path} is damaged: {error}.", "Download it again."
        ) from None


def open_files(paths: Sequence[Path]) -> dict[str, StoredTensor]:
    """The tensors of all the files; in which one a tensor is does not matter."""
    tensors: dict[str, StoredTensor] = {}
    for path in paths:
        safe = path.suffix == ".safetensors"
        tensors.update(open_safetensors(path).tensors if safe else open_pickle(path))
    return tensors


def _tensors(folder: Path) -> dict[str, StoredTensor]:
    for index, whole in zip(_INDEXES, _WHOLE, strict=True):
        if (folder / index).is_file():
            return _sharded(folder, index)
        if (folder / whole).is_file():
            return open_files([folder / whole])
    raise EngineError(
        Trouble.MODEL,
        f"There are no weights in {folder}: none of {', '.join((*_WHOLE, *_INDEXES))}.",
        "Download all the files of the model's repository.",
    )


def _sharded(folder: Path, index: str) -> dict[str, StoredTensor]:
    places = read_json(folder, index, _Index).weight_map
    files = sorted(set(places.values()))
    for file in files:
        if Path(file).name != file:
            raise EngineError(
                Trouble.MODEL, f"{index} names a file outside its folder, {file!r}: it is refused."
            )
    if missing := [file for file in files if not (folder / file).is_file()]:
        raise EngineError(
            Trouble.MODEL,
            f"The checkpoint is not whole: {len(missing)} of its {len(files)} files are missing "
            f"({', '.join(missing[:3])}{' …' if len(missing) > 3 else ''}).",
            "Download the missing files into the same folder.",
        )
    tensors = open_files([folder / file for file in files])
    if lost := sorted(set(places) - set(tensors)):
        raise EngineError(
            Trouble.MODEL,
            f"The files do not hold what {index} says: {missing_text(lost)}.",
            "Download the checkpoint again.",
        )
    return tensors
