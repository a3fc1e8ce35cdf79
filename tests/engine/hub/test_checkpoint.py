"""Checkpoints on the hub: sizes by type from their tables alone, and all of their files at once."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from engine.checkpoints.folder import open_checkpoint
from engine.client.planning import Job, plan_for
from engine.errors import EngineError
from engine.hub import store
from engine.hub.checkpoint import download_checkpoint, needed
from engine.hub.messages import Progress
from engine.hub.tables import INDEX, bytes_by_type, remote_tensors
from tests.engine.hub.fixtures import in_catalogue
from tests.engine.hub.loopback import Answer, Hub
from tests.engine.memory.test_foresee import QWEN_1_5B

OWNER = "someone/a-checkpoint"
SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
SIZES = {"BF16": 2 * 4_000_000, "F32": 4 * 1000}


def shard(path: Path, name: str, dtype: str, count: int, width: int) -> None:
    table = {name: {"dtype": dtype, "shape": [count], "data_offsets": [0, count * width]}}
    text = json.dumps(table).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"\0" * (count * width))


@pytest.fixture
def repository(hub: Hub, tmp_path: Path) -> Path:
    """A checkpoint in two files, with others that no conversion needs."""
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    shard(folder / SHARDS[0], "model.embed_tokens.weight", "BF16", 4_000_000, 2)
    shard(folder / SHARDS[1], "score.weight", "F32", 1000, 4)
    index = {"weight_map": {"model.embed_tokens.weight": SHARDS[0], "score.weight": SHARDS[1]}}
    (folder / INDEX).write_text(json.dumps(index))
    (folder / "config.json").write_text('{"model_type": "qwen2"}')
    (folder / "tokenizer.json").write_text("{}")
    (folder / "pytorch_model.bin").write_bytes(b"a pickle of the same")
    (folder / "README.md").write_text("# read me")
    (folder / "modeling_prm.py").write_text("raise SystemExit")
    for path in folder.iterdir():
        hub.add(OWNER, path.name, path)
    return folder


def test_sizes_by_type_are_read_off_the_tables(hub: Hub, repository: Path) -> None:
    tensors = remote_tensors(OWNER, needed(OWNER))
    assert bytes_by_type(tensors.values()) == SIZES
    assert tensors["score.weight"].shape == (1000,)
    asked = [r for r in hub.requests if r.method == "GET" and r.path.endswith(".safetensors")]
    assert len(asked) == 2
    assert all(request.range for request in asked)


def test_a_plan_takes_it_as_it_will_be_once_converted(hub: Hub, repository: Path) -> None:
    in_catalogue(file=f"convert:{OWNER}")
    (repository / "config.json").write_text(json.dumps(QWEN_1_5B))
    planned = plan_for("seedling", "mine", Job(), gpu="RTX 4090", limit=None)
    assert planned.verifier is not None
    assert planned.verifier.file == pytest.approx(1.64e9, rel=0.01)
    assert planned.note == (
        "mine is not converted; sizes are those of its conversion to q8_0 "
        "(the checkpoint has 8 MiB as BF16, 0 MiB as F32)."
    )
    assert planned.plan.chosen is not None


def test_one_file_needs_no_index(hub: Hub, tmp_path: Path) -> None:
    shard(tmp_path / "model.safetensors", "a", "F16", 10, 2)
    hub.add(OWNER, "model.safetensors", tmp_path / "model.safetensors")
    assert bytes_by_type(remote_tensors(OWNER, ["model.safetensors"]).values()) == {"F16": 20}


@pytest.mark.parametrize(
    ("index", "told"),
    [
        ({"weight_map": {"a": "gone.safetensors"}}, "gone.safetensors is not in the repository"),
        ({"weight_map": {"elsewhere": SHARDS[0]}}, "no file has the tensor elsewhere"),
        ({"weights": {}}, "cut short or damaged"),
    ],
)
def test_an_index_that_does_not_fit_its_files_is_told(
    hub: Hub, repository: Path, index: dict[str, object], told: str
) -> None:
    (repository / INDEX).write_text(json.dumps(index))
    with pytest.raises(EngineError, match=told):
        remote_tensors(OWNER, needed(OWNER))


def test_a_table_that_breaks_off_is_told(hub: Hub, repository: Path) -> None:
    (repository / SHARDS[0]).write_bytes(struct.pack("<Q", 1 << 40))
    with pytest.raises(EngineError, match="cut short or damaged"):
        remote_tensors(OWNER, needed(OWNER))


def test_all_that_a_conversion_needs_is_fetched_and_nothing_else(
    hub: Hub, repository: Path
) -> None:
    told: list[Progress] = []
    fetched = download_checkpoint(OWNER, told.append)
    assert fetched.path == store.stored(OWNER, "")
    got = {path.name for path in fetched.path.iterdir() if not path.name.endswith(".origin.json")}
    assert got == {*SHARDS, INDEX, "config.json", "tokenizer.json"}
    assert len(open_checkpoint(fetched.path).tensors) == 2
    assert (told[-1].done, told[-1].total) == (fetched.bytes, fetched.bytes)
    assert download_checkpoint(OWNER, told.append).bytes == 0


def test_pickles_are_taken_where_there_is_nothing_better(hub: Hub, repository: Path) -> None:
    for file in (*SHARDS, INDEX):
        del hub.files[OWNER, file]
    assert "pytorch_model.bin" in needed(OWNER)


def test_an_interrupted_one_goes_on_with_the_file_it_was_at(hub: Hub, repository: Path) -> None:
    class EnoughError(Exception):
        pass

    def enough(progress: Progress) -> None:
        if progress.done > 1_000_000:
            raise EnoughError

    with pytest.raises(EnoughError):
        download_checkpoint(OWNER, enough)
    kept = store.partial(OWNER, SHARDS[0]).stat().st_size
    hub.requests.clear()
    download_checkpoint(OWNER, lambda _: None)
    assert f"bytes={kept}-" in [request.range for request in hub.requests]


def test_files_of_another_programs_cache_are_taken_over(
    hub: Hub, repository: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "hf" / "hub" / "models--someone--a-checkpoint"
    (folder / "snapshots" / "abc").mkdir(parents=True)
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text("abc")
    cached = folder / "snapshots" / "abc" / SHARDS[0]
    cached.write_bytes((repository / SHARDS[0]).read_bytes())
    fetched = download_checkpoint(OWNER, lambda _: None)
    assert (fetched.path / SHARDS[0]).samefile(cached)  # linked to, not copied
    assert fetched.bytes < 100_000


def test_a_repository_of_other_things_is_told(hub: Hub) -> None:
    with pytest.raises(EngineError, match="no checkpoint"):
        needed("someone/a-model")
    with pytest.raises(EngineError, match="no repository nobody/nothing"):
        needed("nobody/nothing")
    hub.next(Answer(status=403))
    with pytest.raises(EngineError, match="forbids access"):
        needed(OWNER)
