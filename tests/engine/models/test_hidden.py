"""Hidden states from llama.cpp: what the output matrix would turn into logits."""

from __future__ import annotations

import gguf
import numpy as np

from engine.models.base import Span
from engine.models.llama import LlamaWeights
from tests.engine.real_models import append, opened

TEXT = "Tom has 12 apples. He buys 7 more apples. How many apples does he have?"


def output_matrix(weights: LlamaWeights) -> np.ndarray:
    """The seedling's, which is its embedding."""
    reader = gguf.GGUFReader(weights.path)
    (embedding,) = (t for t in reader.tensors if t.name == "token_embd.weight")
    return np.asarray(embedding.data, np.float32)


def test_hidden_states_are_what_the_output_matrix_turns_into_logits(
    seedling_verifier: LlamaWeights,
) -> None:
    with opened(seedling_verifier, outputs=16) as model:
        tokens = model.vocabulary.tokenize(TEXT)
        wanted = [2, 5, len(tokens) - 1]
        logits = model.forward([Span((0,), tokens, wanted)]).copy()
        model.reset()
        states = model.hidden([Span((0,), tokens, wanted)])
        assert states.shape == (3, seedling_verifier.width)
        assert states.dtype == np.float32
        np.testing.assert_allclose(
            states @ output_matrix(seedling_verifier).T, logits, atol=0.02, rtol=0.01
        )


def test_a_path_goes_on_the_same_after_either_kind_of_pass(smollm2: LlamaWeights) -> None:
    with opened(smollm2, outputs=8) as model:
        tokens = model.vocabulary.tokenize(TEXT)
        model.forward([Span((0,), tokens[:-1], ())])
        expected = append(model, 0, tokens[-1:])
        model.reset()
        model.hidden([Span((0, 1), tokens[:-1], (0,))])
        assert model.length(1) == len(tokens) - 1 == model.used
        row = append(model, 1, tokens[-1:])
        assert int(row.argmax()) == int(expected.argmax())
        assert np.abs(row - expected).max() < 0.5  # other batches, in a quantised model


def test_a_pass_of_more_tokens_than_rows_of_output_is_cut(seedling_verifier: LlamaWeights) -> None:
    tokens = seedling_verifier.vocabulary.tokenize(TEXT * 4)
    wanted = list(range(0, len(tokens), 3))
    with opened(seedling_verifier, outputs=200) as model:
        whole = model.hidden([Span((0,), tokens, wanted)]).copy()
    with opened(seedling_verifier, paths=3, outputs=4) as model:
        pieces = model.hidden([Span((0,), tokens[:7], [i for i in wanted if i < 7])])
        pieces = np.concatenate(
            [pieces, model.hidden([Span((0,), tokens[7:], [i - 7 for i in wanted if i >= 7])])]
        )
    assert np.abs(pieces - whole).max() < 0.02


def test_nothing_wanted_gives_nothing(seedling_verifier: LlamaWeights) -> None:
    with opened(seedling_verifier) as model:
        assert model.hidden([Span((0,), [3, 4, 5], ())]).shape == (0, seedling_verifier.width)
        assert model.length(0) == 3
