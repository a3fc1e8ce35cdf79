"""The cache of the transformers engine as a tree: true architectures, small random weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import pytest
import torch
import transformers

from engine.models.base import Interrupted, Span
from engine.models.hf.model import HfModel
from engine.models.hf.weights import HfWeights
from engine.models.stop import StopSignal
from tests.engine.checkpoints.plain import SIZES, build_plain

TOLERANCE = 1e-5
TEXT = tuple(range(10, 40))
OTHER = tuple(range(50, 70))

ARCHITECTURES = {
    "llama": transformers.LlamaConfig(**SIZES),
    "qwen2": transformers.Qwen2Config(**SIZES),
    "qwen3": transformers.Qwen3Config(**SIZES),
    "phi3": transformers.Phi3Config(**SIZES),
    "mistral, window 6": transformers.MistralConfig(**SIZES, sliding_window=6),
    "gemma2, window 6": transformers.Gemma2Config(
        **SIZES, sliding_window=6, attn_logit_softcapping=2.0, final_logit_softcapping=5.0
    ),
    "gemma3, windows in two of three layers": transformers.Gemma3TextConfig(
        **SIZES, sliding_window=6, layer_types=2 * ["sliding_attention"] + ["full_attention"]
    ),
}

Load = Callable[[str], HfWeights]


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Load:
    @cache
    def loaded(name: str) -> HfWeights:
        folder = build_plain(ARCHITECTURES[name], tmp_path_factory.mktemp("plain"))
        return HfWeights(folder, device="cpu", threads=1)

    return loaded


def opened(weights: HfWeights, capacity: int = 200, batch: int = 512) -> HfModel:
    return HfModel(weights, capacity=capacity, paths=8, stop=StopSignal(), batch=batch)


def append(model: HfModel, path: int, tokens: Sequence[int]) -> np.ndarray:
    """Logits after each of `tokens`."""
    return model.forward([Span((path,), tokens, range(len(tokens)))])


def whole(weights: HfWeights, tokens: Sequence[int]) -> np.ndarray:
    """Logits after each token by the model as transformers runs it."""
    with torch.inference_mode():
        return weights.model(torch.tensor([list(tokens)])).logits[0].numpy()


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_branches_have_the_logits_of_their_whole_text(architecture: str, load: Load) -> None:
    weights = load(architecture)
    model = opened(weights)
    append(model, 0, TEXT[:9])
    for path in (1, 2):
        model.fork(0, path)
    first, second, third = np.split(
        model.forward(
            [
                Span((0,), TEXT[9:20], range(11)),
                Span((1,), OTHER[:7], range(7)),
                Span((2,), OTHER[7:9], range(2)),
            ]
        ),
        [11, 18],
    )
    for path, rows in ((TEXT[9:20], first), (OTHER[:7], second), (OTHER[7:9], third)):
        expected = whole(weights, TEXT[:9] + path)[9:]
        assert np.abs(rows - expected).max() < TOLERANCE


@pytest.mark.parametrize("architecture", ["qwen2", "gemma3, windows in two of three layers"])
def test_a_batch_cut_into_small_ones_gives_the_same(architecture: str, load: Load) -> None:
    weights = load(architecture)
    model = opened(weights, batch=4)
    spans = [Span((0,), TEXT[:10], (2, -1)), Span((1,), OTHER[:9])]
    expected = [*whole(weights, TEXT[:10])[[2, 9]], whole(weights, OTHER[:9])[8]]
    assert np.abs(model.forward(spans) - expected).max() < TOLERANCE


def test_hidden_states_are_those_that_the_output_matrix_reads(load: Load) -> None:
    weights = load("qwen2")
    model = opened(weights)
    states = model.hidden([Span((0,), TEXT, (4, -1))])
    assert states.dtype == np.float32
    logits = states @ weights.model.lm_head.weight.numpy().T
    assert np.abs(logits - whole(weights, TEXT)[[4, -1]]).max() < TOLERANCE
    assert model.length(0) == len(TEXT)


def test_only_the_named_columns_are_returned(load: Load) -> None:
    model = opened(load("llama"))
    rows = model.forward([Span((0,), TEXT)], (7, 3))
    assert np.abs(rows - whole(load("llama"), TEXT)[-1:, [7, 3]]).max() < TOLERANCE


def test_a_shared_prefix_takes_its_cells_once(load: Load) -> None:
    model = opened(load("llama"))
    model.forward([Span((0, 1, 2), TEXT, ())])
    assert model.used == len(TEXT)
    model.fork(2, 3)
    assert (model.used, model.length(3)) == (len(TEXT), len(TEXT))
    append(model, 1, OTHER)
    for path in (0, 2, 3):
        model.drop(path)
    assert model.used == len(TEXT) + len(OTHER)
    model.drop(1)
    assert model.used == 0


def test_cells_that_were_used_before_do_not_change_what_follows(load: Load) -> None:
    weights = load("qwen2")
    model = opened(weights)
    clean = append(model, 0, TEXT)
    model.reset()
    # Leaves holes in which the same path then comes to lie in another order.
    for path in range(6):
        append(model, path, OTHER[path : path + 5])
    for path in (4, 0, 3, 1):
        model.drop(path)
    assert np.array_equal(append(model, 0, TEXT), clean)


def test_a_path_comes_back_from_host_memory_as_it_was(load: Load) -> None:
    model = opened(load("qwen2"))
    whole = append(model, 0, TEXT)[-1]
    model.drop(0)
    append(model, 0, TEXT[:4])
    model.fork(0, 1)
    append(model, 1, TEXT[4:-1])
    saved = model.save(1, 4)
    assert (saved.length, saved.bytes > 0) == (len(TEXT) - 5, True)
    model.drop(1)
    append(model, 2, OTHER)
    model.fork(0, 3)
    model.restore(3, saved)
    assert np.abs(append(model, 3, TEXT[-1:])[-1] - whole).max() < TOLERANCE


def test_company_changes_no_more_than_the_last_bits(load: Load) -> None:
    weights = load("llama")
    model = opened(weights)
    alone = append(model, 0, TEXT)[-1]
    for path in range(1, 6):
        append(model, path, OTHER[path:])
    model.drop(0)
    append(model, 0, TEXT[:-1])
    spans = [Span((path,), (TEXT[-1],)) for path in (1, 2, 0, 3, 4)]
    assert np.abs(model.forward(spans)[2] - alone).max() < TOLERANCE


def test_a_computation_is_seen_to_get_on_with_each_layer(load: Load) -> None:
    weights = load("llama")
    beats: list[int] = []
    stop = StopSignal(lambda: beats.append(len(beats)))
    append(HfModel(weights, capacity=200, paths=4, stop=stop), 0, TEXT[:5])
    assert len(beats) == len(weights.model.model.layers)


def test_a_stop_ends_a_computation_between_two_layers_and_leaves_no_trace(load: Load) -> None:
    weights = load("llama")
    stop = StopSignal()
    model = HfModel(weights, capacity=200, paths=4, stop=stop)
    append(model, 0, TEXT[:5])
    layers = weights.model.model.layers
    seen: list[int] = []

    def ask(layer: torch.nn.Module, *_: object) -> None:
        seen.append(list(layers).index(layer))
        if len(seen) == 2:
            stop.set()

    handles = [layer.register_forward_hook(ask) for layer in layers]
    with pytest.raises(Interrupted):
        append(model, 0, TEXT[5:])
    for handle in handles:
        handle.remove()
    assert seen == [0, 1]
    assert (model.used, model.length(0)) == (5, 5)
    stop.clear()
    rows = append(model, 0, TEXT[5:])
    assert np.abs(rows - whole(weights, TEXT)[5:]).max() < TOLERANCE
