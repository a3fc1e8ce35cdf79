"""Checkpoints that are broken, foreign or meant to harm: refused clearly, nothing left behind."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pytest

from engine.checkpoints.folder import checkpoint_name
from engine.checkpoints.safetensors import open_safetensors, write_safetensors
from engine.checkpoints.tensors import values
from engine.errors import EngineError
from engine.protocol.events import Trouble
from engine.verify.heads import head_beside, head_of
from tests.engine.convert.converting import converted

if TYPE_CHECKING:
    from tests.engine.checkpoints import Family

Checkpoint = Callable[["Family"], Path]
Tensors = dict[str, np.ndarray]
FORMAT = "reasonflux-1.5b"
"""The one that needs no marker of the vocabulary."""


@pytest.fixture
def folder(checkpoint: Checkpoint, tmp_path: Path) -> Path:
    """A small checkpoint with a head, to be tampered with."""
    folder = Path(shutil.copytree(checkpoint("math-shepherd"), tmp_path / "prm"))
    head = {"score.weight": np.ones((2, 64), np.float32), "score.bias": np.ones(2, np.float32)}
    change_tensors(folder, lambda tensors: tensors.update(head))
    return folder


def refused(folder: Path, match: str, **options: Any) -> EngineError:
    """The error of a conversion that leaves nothing behind."""
    place = folder.parent / "out"
    place.mkdir(exist_ok=True)
    options.setdefault("format", FORMAT)
    with pytest.raises(EngineError, match=match) as caught:
        converted(folder, place / "x.gguf", **options)
    assert list(place.iterdir()) == []
    return caught.value


def change_tensors(folder: Path, change: Callable[[Tensors], None]) -> None:
    path = folder / "model.safetensors"
    tensors = {name: values(t) for name, t in open_safetensors(path).tensors.items()}
    change(tensors)
    path.unlink()
    write_safetensors(path, tensors, {})


def lacks(name: str) -> Callable[[Tensors], None]:
    return lambda tensors: tensors.__delitem__(name)


def change_config(folder: Path, **changes: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_a_verifiers_format_without_its_head_is_refused(folder: Path) -> None:
    def strip(tensors: Tensors) -> None:
        del tensors["score.weight"], tensors["score.bias"]

    change_tensors(folder, strip)
    refused(folder, "format 'reasonflux-1.5b' have a head, and prm has none")


def test_a_kind_of_model_without_its_head_is_refused(folder: Path) -> None:
    def strip(tensors: Tensors) -> None:
        del tensors["score.weight"], tensors["score.bias"]

    change_tensors(folder, strip)
    change_config(folder, architectures=["Qwen2ForProcessRewardModel"])
    refused(
        folder,
        "Models of the kind 'Qwen2ForProcessRewardModel' have a head, and prm has none of a known",
        format=None,
    )


def test_a_head_without_its_bias_is_refused(folder: Path) -> None:
    change_tensors(folder, lacks("score.bias"))
    refused(folder, r"The head in prm is not whole: score\.bias is missing\.")


def test_a_head_of_another_width_is_refused(folder: Path) -> None:
    change_tensors(folder, lambda t: t.update({"score.weight": np.ones((2, 65), np.float32)}))
    refused(folder, "head in prm belongs to another model: it reads .* 65 values")


def test_a_head_of_another_kind_is_refused(folder: Path) -> None:
    change_tensors(folder, lambda t: t.update({"score.weight": np.ones((3, 64), np.float32)}))
    refused(folder, r"no kind that Sapwood knows: score.weight has the shape \(3, 64\)")


@pytest.mark.parametrize("name", ["score.weight", "model.layers.1.mlp.up_proj.weight"])
def test_values_that_are_no_numbers_are_refused(folder: Path, name: str) -> None:
    change_tensors(folder, lambda t: t[name].__setitem__((1, 3), np.nan))
    refused(folder, rf"{name.rpartition('.')[0]}.* holds values that are no numbers")


def test_values_beyond_16_bits_are_refused(folder: Path) -> None:
    name = "model.layers.0.mlp.up_proj.weight"
    change_tensors(folder, lambda t: t[name].__setitem__((1, 3), 1e30))
    refused(folder, "up_proj.weight holds values too large for 16 bits")


def test_a_pickle_with_code_is_refused_and_not_run(checkpoint: Checkpoint, tmp_path: Path) -> None:
    import torch

    class Touching:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.mkdir, (str(tmp_path / "proof"),)

    folder = Path(shutil.copytree(checkpoint("skywork"), tmp_path / "skywork"))
    file = folder / "pytorch_model.bin"
    torch.save(torch.load(file, weights_only=True) | {"more": Touching()}, file)
    refused(folder, r"pytorch_model\.bin is refused.*Nothing of it was run", format=None)
    assert not (tmp_path / "proof").exists()


def test_code_in_the_repository_is_never_imported(folder: Path, tmp_path: Path) -> None:
    change_config(folder, auto_map={"AutoModel": "modeling_evil.Evil"})
    (folder / "modeling_evil.py").write_text(f"open({str(tmp_path / 'proof')!r}, 'w')")
    (tmp_path / "out").mkdir()
    assert converted(folder, tmp_path / "out" / "x.gguf", format=FORMAT).format == FORMAT
    assert not (tmp_path / "proof").exists()


def test_a_tokenizer_without_the_marker_is_refused(checkpoint: Checkpoint, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(checkpoint("qwen2.5-math-prm"), tmp_path / "prm"))
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(checkpoint("trl") / file, folder / file)
    refused(
        folder, r"reads the step marker '<extra_0>' as \d+ tokens, not as token 151651", format=None
    )


def test_a_tokenizer_of_another_model_is_refused(folder: Path) -> None:
    change_tensors(
        folder, lambda t: t.update({"model.embed_tokens.weight": np.ones((1000, 64), np.float32)})
    )
    change_config(folder, vocab_size=1000)
    refused(folder, "tokenizer belongs to another model: it has tokens up to 31,999")


def test_a_tokenizer_that_llama_cpp_would_read_otherwise_is_refused(
    checkpoint: Checkpoint, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(checkpoint("trl"), tmp_path / "trl"))
    path = folder / "tokenizer.json"
    text = path.read_text("utf-8").replace('"add_prefix_space": false', '"add_prefix_space": true')
    path.write_text(text, "utf-8")
    error = refused(
        folder, "llama.cpp would read text otherwise than the tokenizer of trl does", format="trl"
    )
    assert "nothing was written" in error.advice


def test_an_unknown_splitting_rule_is_refused(checkpoint: Checkpoint, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(checkpoint("trl"), tmp_path / "trl"))
    path = folder / "tokenizer.json"
    path.write_text(path.read_text("utf-8").replace(r"|\\p{N}|", r"|\\p{N}{1,2}|"), "utf-8")
    refused(folder, "splits text by a rule that is not known here", format="trl")


def test_a_missing_shard_is_named(folder: Path) -> None:
    names = list(open_safetensors(folder / "model.safetensors").tensors)
    files = {name: f"model-0000{1 + i % 2}-of-00002.safetensors" for i, name in enumerate(names)}
    (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors")
    index = {"metadata": {}, "weight_map": files}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    refused(folder, r"1 of its 2 files are missing \(model-00002-of-00002\.safetensors\)")


def test_shards_that_lack_a_tensor_are_refused(folder: Path) -> None:
    files = {"model.embed_tokens.weight": "a.safetensors", "lost": "a.safetensors"}
    (folder / "model.safetensors").rename(folder / "a.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": files}))
    refused(folder, "do not hold what model.safetensors.index.json says: lost is missing")


@pytest.mark.parametrize("name", ["../x.safetensors", "/etc/passwd", "a/b.safetensors"])
def test_a_shard_outside_the_folder_is_refused(folder: Path, name: str) -> None:
    index = {"weight_map": {"a": name}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    refused(folder, "names a file outside its folder")


def test_a_file_cut_short_is_refused(folder: Path) -> None:
    path = folder / "model.safetensors"
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 4096)
    refused(
        folder, r"model\.safetensors is cut short or damaged: the tensor \S+ ends [0-9,]+ bytes"
    )


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"model_type": "gpt2"}, "kind 'gpt2' cannot be converted"),
        ({"model_type": None}, "kind 'None' cannot be converted"),
        ({"hidden_size": -64}, "makes no sense: hidden_size is -64"),
        ({"hidden_size": 10**15}, "makes no sense: hidden_size is 1,000,000,000,000,000"),
        ({"hidden_size": 128}, "reads hidden states of 64 values, and this model's have 128"),
        ({"hidden_size": "wide"}, r"config\.json makes no sense: Expected `int`"),
        ({"num_attention_heads": 0}, "num_attention_heads is 0"),
        ({"num_attention_heads": 64, "num_key_value_heads": 32}, "a head has 1 values"),
        ({"num_key_value_heads": -2}, "num_key_value_heads is -2"),
        ({"num_key_value_heads": 3}, "4 heads cannot share 3"),
        ({"head_dim": 1 << 24}, r"self_attn\.._proj\.weight has the shape"),
        ({"intermediate_size": 10**6}, r"does not fit its config: model\.layers\.0\.mlp"),
        ({"num_hidden_layers": 3}, r"has 2 layers, and config\.json tells of 3"),
        ({"num_hidden_layers": 1}, r"has 2 layers, and config\.json tells of 1"),
        ({"num_hidden_layers": 1 << 24}, r"has 2 layers, and config\.json tells of 16,777,216"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers is 1,000,000,000"),
        ({"num_hidden_layers": [2]}, r"config\.json makes no sense: Expected `int`"),
        ({"vocab_size": 32_001}, r"knows 32,000 tokens, and config\.json tells of 32,001"),
        ({"vocab_size": -1}, "vocab_size is -1"),
        ({"vocab_size": "many"}, r"config\.json makes no sense: Expected `int \| null`"),
        ({"max_position_embeddings": 10**10}, "max_position_embeddings is 10,000,000,000"),
        ({"sliding_window": -1}, "sliding_window is -1"),
        ({"rms_norm_eps": 0}, "rms_norm_eps is 0"),
        ({"rope_theta": -1.0}, "rope_theta is -1"),
        ({"rope_theta": 1e300}, r"rope_theta is 1e\+300"),
        ({"rope_scaling": {"type": "linear", "factor": 0}}, "its rope_scaling"),
        ({"rope_scaling": {"type": "llama3", "high_freq_factor": 1.0}}, "its rope_scaling"),
        ({"hidden_act": "gelu"}, "with 'gelu' units cannot"),
        ({"rope_scaling": {"type": "dynamic", "factor": 2}}, "'dynamic' positions cannot"),
        ({"quantization_config": {"bits": 4}}, "quantised already"),
    ],
)
def test_a_config_that_tells_of_another_model_is_refused(
    folder: Path, changes: dict[str, object], reason: str
) -> None:
    change_config(folder, **changes)
    refused(folder, reason)


@pytest.mark.parametrize("prefix", ["model.", ""])
def test_a_tensor_that_is_missing_is_named_as_the_checkpoint_does(
    folder: Path, prefix: str
) -> None:
    def bare(tensors: Tensors) -> None:
        for name in list(tensors):
            tensors[f"{prefix}{name.removeprefix('model.')}" if "model." in name else name] = (
                tensors.pop(name)
            )

    lost = f"{prefix}layers.1.mlp.up_proj.weight"
    change_tensors(folder, bare)
    change_tensors(folder, lacks(lost))
    refused(folder, rf"not whole: of its 20 tensors, {lost} is missing\.")
    change_tensors(folder, lacks(f"{prefix}norm.weight"))
    refused(folder, rf"not whole: of its 20 tensors, {lost} and 1 more are missing\.")


def test_an_output_matrix_that_is_missing_is_named(checkpoint: Checkpoint, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(checkpoint("math-shepherd"), tmp_path / "prm"))
    change_tensors(folder, lacks("lm_head.weight"))
    refused(folder, r"of its 21 tensors, lm_head\.weight is missing\.", format="math-shepherd")


def test_an_unknown_tensor_is_named(folder: Path) -> None:
    change_tensors(folder, lambda t: t.update({"model.adapter.weight": np.ones(2, np.float32)}))
    refused(folder, r"a tensor that Sapwood does not know: model\.adapter\.weight")


def test_a_folder_that_is_none_is_told(tmp_path: Path) -> None:
    refused(tmp_path / "none", r"is no checkpoint: there is no config\.json")
    (tmp_path / "file").write_text("")
    refused(tmp_path / "file", r"file is a file")
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "config.json").write_text("{}")
    refused(tmp_path / "empty", "There are no weights in")
    (tmp_path / "empty" / "config.json").write_text("[1")
    refused(tmp_path / "empty", r"config\.json is damaged")


def test_a_full_disk_is_told_before_anything_is_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil._ntuple_diskusage(10**12, 10**12, 5 << 20)  # type: ignore[attr-defined]
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage)
    error = refused(folder, r"needs \d+ MiB of disk, and 5 MiB are free", kind="q4_k_m")
    assert error.trouble is Trouble.STORAGE


def test_a_body_with_another_head_beside_it_is_refused(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "x.gguf"
    converted(folder, out, format=FORMAT)
    assert head_of(out).family == "trl"
    write_safetensors(head_beside(out), {"score.weight": np.ones((2, 64), np.float32)}, {})
    with pytest.raises(EngineError, match=r"x\.head\.safetensors is not the head that x\.gguf was"):
        head_of(out)
    head_beside(out).unlink()
    with pytest.raises(EngineError, match=r"without its head: there is no x\.head\.safetensors"):
        head_of(out)


def test_the_name_of_a_checkpoint_is_its_repositorys(tmp_path: Path) -> None:
    cached = tmp_path / "models--Qwen--Qwen2.5-Math-PRM-7B" / "snapshots" / "abc"
    cached.mkdir(parents=True)
    assert checkpoint_name(cached) == "Qwen2.5-Math-PRM-7B"
    assert checkpoint_name(tmp_path / "some-model") == "some-model"


def test_messages_between_the_processes_are_plain() -> None:
    from engine.protocol.conversion import Conversion, Converting

    line = msgspec.json.encode(Converting("writing", 0.5))
    assert line == b'{"type":"converting","doing":"writing","done":0.5}'
    assert msgspec.json.decode(line, type=Conversion) == Converting("writing", 0.5)
