"""Loading checkpoints: what is taken, what is refused, and where the weights are."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from engine.errors import EngineError
from engine.models.base import Interrupted, Span
from engine.models.hf.model import HfModel
from engine.models.hf.parking import Parking
from engine.models.hf.weights import HfWeights
from engine.models.stop import StopSignal
from engine.protocol.events import Trouble
from tests.engine.checkpoints import Family
from tests.engine.checkpoints.plain import SIZES, build_plain

Rewrite = Callable[[Path], object]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_plain(transformers.LlamaConfig(**SIZES), tmp_path_factory.mktemp("plain"))


@pytest.fixture
def folder(plain: Path, tmp_path: Path) -> Path:
    return shutil.copytree(plain, tmp_path / "model")


def load(folder: Path) -> HfWeights:
    return HfWeights(folder, device="cpu", threads=1)


def logits(weights: HfWeights) -> np.ndarray:
    model = HfModel(weights, capacity=16, paths=1, stop=StopSignal())
    return model.forward([Span((0,), (1, 2, 3))])


def change_config(folder: Path, **keys: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | keys))


def change_tensors(folder: Path, change: Callable[[dict[str, torch.Tensor]], object]) -> None:
    path = folder / "model.safetensors"
    tensors = load_file(path)
    change(tensors)
    save_file(tensors, path, {"format": "pt"})


REFUSED: dict[str, tuple[Rewrite, str]] = {
    "no configuration": (lambda f: (f / "config.json").unlink(), "cannot load model"),
    "no weights": (lambda f: (f / "model.safetensors").unlink(), "cannot load model"),
    "weights cut short": (
        lambda f: (f / "model.safetensors").write_bytes(
            (f / "model.safetensors").read_bytes()[:9000]
        ),
        "cannot load model",
    ),
    "a tensor missing": (
        lambda f: change_tensors(f, lambda t: t.pop("model.norm.weight")),
        r"not whole: model.norm.weight and 0 more",
    ),
    "a tensor of another shape": (
        lambda f: change_tensors(f, lambda t: t.update({"model.norm.weight": torch.ones(9)})),
        "cannot load model",
    ),
    "an architecture only the repository has": (
        lambda f: change_config(
            f, model_type="custom", auto_map={"AutoConfig": "evil.Config", "AutoModel": "evil.M"}
        ),
        "cannot load model",
    ),
    "a recurrent state": (
        lambda f: transformers.MambaConfig(hidden_size=8).save_pretrained(f),
        "a state that the paths of a search cannot share",
    ),
    "layers without attention": (
        lambda f: transformers.Qwen3NextConfig(num_hidden_layers=2).save_pretrained(f),
        "a state that the paths of a search cannot share",
    ),
    "an encoder and a decoder": (
        lambda f: transformers.T5Config(d_model=8).save_pretrained(f),
        "does not only read and write text",
    ),
    "pictures": (
        lambda f: transformers.Gemma3Config().save_pretrained(f),
        "does not only read and write text",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_used_is_refused_in_words(case: str, folder: Path) -> None:
    rewrite, words = REFUSED[case]
    rewrite(folder)
    with pytest.raises(EngineError, match=words) as refusal:
        load(folder)
    assert refusal.value.trouble is Trouble.MODEL
    assert refusal.value.advice


def test_code_of_the_repository_is_not_run_even_where_it_is_named(folder: Path) -> None:
    (folder / "evil.py").write_text(f"open({str(folder / 'ran')!r}, 'w')\n")
    change_config(folder, auto_map={"AutoModelForCausalLM": "evil.M", "AutoModel": "evil.M"})
    load(folder)
    assert not (folder / "ran").exists()


def test_weights_that_are_no_numbers_are_told(folder: Path) -> None:
    change_tensors(folder, lambda t: t["model.norm.weight"].fill_(float("nan")))
    with pytest.raises(EngineError, match="computes no numbers"):
        logits(load(folder))


def test_a_checkpoint_without_an_output_matrix_gives_hidden_states_only(
    checkpoint: Callable[[Family], Path],
) -> None:
    weights = load(checkpoint("qwen2.5-math-prm"))
    model = HfModel(weights, capacity=16, paths=1, stop=StopSignal())
    assert model.hidden([Span((0,), (1, 2, 3))]).shape == (1, weights.width)
    with pytest.raises(EngineError, match="has no output matrix"):
        model.forward([Span((0,), (1,))])


def test_loading_tells_its_progress_and_can_be_stopped(folder: Path) -> None:
    parts: list[float] = []
    HfWeights(folder, device="cpu", threads=1, progress=lambda done: not parts.append(done))
    assert parts == sorted(parts)
    assert (parts[0], parts[-1]) == (0.0, 1.0)
    with pytest.raises(Interrupted):
        HfWeights(folder, device="cpu", threads=1, progress=lambda done: done < 0.5)


def test_ends_and_limits_come_from_the_checkpoint(folder: Path) -> None:
    change_config(folder, eos_token_id=[9, 257])
    weights = load(folder)
    assert [weights.vocabulary.is_end(token) for token in (8, 9, 257)] == [False, True, True]
    assert weights.cell_bytes == 2 * 3 * 2 * 8 * 4  # keys and values of 3 layers, 2 heads of 8


def test_rope_that_turns_with_the_length_bounds_the_context(folder: Path) -> None:
    change_config(
        folder,
        rope_parameters={
            "rope_type": "dynamic",
            "factor": 4.0,
            "rope_theta": 10_000.0,
            "original_max_position_embeddings": 512,
        },
    )
    assert load(folder).trained_context == 512


def test_weights_that_left_the_device_come_back_unchanged(tmp_path: Path) -> None:
    # `meta` stands for a device: what is moved there has no memory on the host any more.
    config = transformers.LlamaConfig(**SIZES, tie_word_embeddings=True)
    weights = load(build_plain(config, tmp_path))
    before = logits(weights)
    parking = Parking(weights.model, torch.device("meta"))
    parking.awake = True
    for _ in range(2):
        parking.rest()
        assert np.array_equal(logits(weights), before)
        parking.wake()
        assert {tensor.device.type for tensor in weights.model.parameters()} == {"meta"}
    assert weights.model.lm_head.weight is weights.model.model.embed_tokens.weight


def test_a_model_that_slept_goes_on_where_it_was(folder: Path) -> None:
    weights = load(folder)
    model = HfModel(weights, capacity=16, paths=2, stop=StopSignal())
    model.forward([Span((0,), (1, 2, 3, 4))])
    expected = logits(weights)
    for unloading in (True, False):
        model.sleep(weights=unloading, save=True)
        assert not model.awake
        assert weights.loaded is not unloading
        assert model.saved_bytes > 0
        model.fork(0, 1)
        model.wake()
        assert model.awake
        assert weights.loaded
        model.drop(1)
    model.reset()
    assert np.array_equal(model.forward([Span((0,), (1, 2, 3))]), expected)


def test_a_model_that_slept_keeps_its_paths(folder: Path) -> None:
    model = HfModel(load(folder), capacity=16, paths=2, stop=StopSignal())
    model.forward([Span((0, 1), (1, 2, 3))])
    before = model.forward([Span((0,), (4,))])
    model.sleep(weights=True, save=False)
    model.wake()
    assert np.array_equal(model.forward([Span((1,), (4,))]), before)


def test_waking_can_be_stopped(folder: Path) -> None:
    stop = StopSignal()
    model = HfModel(load(folder), capacity=16, paths=2, stop=stop)
    model.sleep(weights=True, save=True)
    stop.set()
    with pytest.raises(Interrupted):
        model.wake()
    assert not model.awake
