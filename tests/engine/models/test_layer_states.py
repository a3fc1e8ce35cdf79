"""The states of every layer, from llama.cpp and from torch, against transformers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import torch

from engine import seedling
from engine.models.base import Span, StatesModel
from engine.models.hf.model import HfModel
from engine.models.hf.weights import HfWeights
from engine.models.llama import LlamaModel, LlamaWeights
from engine.models.stop import StopSignal
from engine.seedling.checkpoint import write_checkpoint

TEXT = "Tom has 12 apples. He buys 7 more apples. How many apples does he have?"
F16 = 5e-3
"""Largest relative error of a layer computed with the keys, values and products in F16."""


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> HfWeights:
    folder = write_checkpoint(seedling.generator_path(), tmp_path_factory.mktemp("seedling"))
    return HfWeights(folder, device="cpu", threads=1)


@pytest.fixture(params=["llama.cpp", "torch"])
def model(
    request: pytest.FixtureRequest, seedling_generator: LlamaWeights, checkpoint: HfWeights
) -> Iterator[StatesModel]:
    if request.param == "torch":
        yield HfModel(checkpoint, capacity=256, paths=4, stop=StopSignal(), all_layers=True)
        return
    llama = LlamaModel(
        seedling_generator,
        capacity=256,
        paths=4,
        outputs=64,
        stop=StopSignal(),
        threads=1,
        all_layers=True,
    )
    with closing(llama):
        yield llama


def by_transformers(weights: HfWeights, tokens: list[int]) -> np.ndarray:
    """Shape (tokens, layers, width)."""
    with torch.inference_mode():
        found = weights.model(torch.tensor([tokens]), output_hidden_states=True)
    return torch.stack([state[0] for state in found.hidden_states[1:]], dim=1).numpy()


def error(found: np.ndarray, expected: np.ndarray) -> float:
    """Relative to the largest value."""
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def test_every_layer_is_what_transformers_computes(
    model: StatesModel, checkpoint: HfWeights
) -> None:
    tokens = model.vocabulary.tokenize(TEXT)
    expected = by_transformers(checkpoint, tokens)
    _, states = model.read([Span((0,), [token]) for token in tokens])
    assert states.shape == expected.shape == (len(tokens), 4, 128)
    for layer in range(4):
        assert error(states[:, layer], expected[:, layer]) < F16, f"layer {layer}"


def test_states_are_summed_over_the_tokens_of_a_span(
    model: StatesModel, checkpoint: HfWeights
) -> None:
    tokens = model.vocabulary.tokenize(TEXT)
    expected = by_transformers(checkpoint, tokens)
    model.read([Span((0, 1), tokens[:3], ())])
    logits, sums = model.read([Span((0,), tokens[3:9], (-1,)), Span((0,), tokens[9:11], (0, 1))])
    assert logits.shape == (3, model.vocabulary.size)
    assert error(sums[0], expected[3:9].sum(0)) < F16
    assert error(sums[1], expected[9:11].sum(0)) < F16


def test_what_is_read_has_the_logits_of_a_forward_pass(model: StatesModel) -> None:
    tokens = model.vocabulary.tokenize(TEXT)
    logits, _ = model.read([Span((0,), tokens, (4, -1))])
    logits = logits.copy()
    model.drop(0)
    assert error(logits, model.forward([Span((0,), tokens, (4, -1))])) < F16


def test_tokens_that_were_taken_back_leave_no_trace(model: StatesModel) -> None:
    tokens = model.vocabulary.tokenize(TEXT)
    expected = model.forward([Span((0,), tokens)]).copy()
    model.drop(0)
    model.forward([Span((0,), tokens[:8], ())])
    model.fork(0, 1)
    model.read([Span((0,), [5, 6, 7])])
    model.shorten(0, 6)
    assert model.length(0) == 6
    assert model.used == 8
    found = model.forward([Span((0,), tokens[6:])])
    assert error(found, expected) < F16
    assert error(model.forward([Span((1,), tokens[8:])]), expected) < F16


def test_only_the_last_layer_unless_asked(
    seedling_generator: LlamaWeights, checkpoint: HfWeights, tmp_path: Path
) -> None:
    model = LlamaModel(
        seedling_generator, capacity=256, paths=4, outputs=8, stop=StopSignal(), threads=1
    )
    tokens = model.vocabulary.tokenize(TEXT)
    with closing(model):
        _, sums = model.read([Span((0,), tokens, ())])
    assert sums.shape == (1, 1, 128)
    assert error(sums[0, 0], by_transformers(checkpoint, tokens)[:, -1].sum(0)) < F16
