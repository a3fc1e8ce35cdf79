"""The tensors of a checkpoint on the hub: names, types and shapes, without their bytes.

Of each file only the table at its beginning is fetched.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import msgspec

from engine.checkpoints.table import damaged, read_table
from engine.hub.problems import explained
from engine.hub.remote import Forward, endpoint, look_up, stream

INDEX = "model.safetensors.index.json"
_TABLE = 64 << 20
"""Bytes in which a table ends for sure."""
_TEXT = 32 << 20
"""Bytes of the largest text file that is fetched whole."""


class _Index(msgspec.Struct):
    weight_map: dict[str, str]


@dataclass(frozen=True, slots=True)
class RemoteTensor:
    name: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int


def remote_tensors(repository: str, files: Iterable[str]) -> dict[str, RemoteTensor]:
    """The tensors of all safetensors files of a checkpoint.

    Args:
        files: the names of its files.

    Raises:
        EngineError: they cannot be had, are damaged, or do not hold what their index says.
    """
    files = set(files)
    places: Mapping[str, str] = {}
    if INDEX in files:
        try:
            places = msgspec.json.decode(remote_text(repository, INDEX), type=_Index).weight_map
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise damaged(INDEX, str(error)) from None
        if lost := sorted(set(places.values()) - files):
            raise damaged(INDEX, f"{lost[0]} is not in the repository")
    shards = sorted(set(places.values())) or sorted(f for f in files if f.endswith(".safetensors"))
    tensors: dict[str, RemoteTensor] = {}
    for shard in shards:
        tensors.update(_tensors(repository, shard))
    if lost := sorted(set(places) - set(tensors)):
        raise damaged(INDEX, f"no file has the tensor {lost[0]}")
    return tensors


def bytes_by_type(tensors: Iterable[RemoteTensor]) -> dict[str, int]:
    """What the tensors of each type take together."""
    sizes: Counter[str] = Counter()
    for tensor in tensors:
        sizes[tensor.dtype] += tensor.bytes
    return dict(sizes)


def remote_text(repository: str, file: str) -> bytes:
    """A small file of a repository.

    Raises:
        EngineError: it cannot be had.
    """
    found = look_up(repository, file)
    try:
        with stream(found, 0) as response:
            return Forward(response, _TEXT).read(min(found.size, _TEXT))
    except Exception as error:
        raise explained(error, repository, file, endpoint()) from None


def _tensors(repository: str, file: str) -> dict[str, RemoteTensor]:
    found = look_up(repository, file)
    try:
        with stream(found, 0, min(found.size, _TABLE)) as response:
            table = read_table(Forward(response, _TABLE), found.size, file)
    except Exception as error:
        raise explained(error, repository, file, endpoint()) from None
    return {
        name: RemoteTensor(name, e.dtype, e.shape, e.data_offsets[1] - e.data_offsets[0])
        for name, e in table.entries.items()
    }
