"""A checkpoint's conversion is foreseen from its config."""

from __future__ import annotations

import json

import pytest

from engine.errors import EngineError
from engine.memory.estimate import CacheType
from engine.memory.foresee import foresee

QWEN_1_5B = {
    "hidden_size": 1536,
    "num_hidden_layers": 28,
    "num_attention_heads": 12,
    "num_key_value_heads": 2,
    "intermediate_size": 8960,
    "max_position_embeddings": 4096,
    "vocab_size": 151936,
    "tie_word_embeddings": True,
}
LLAMA_8B = {
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "max_position_embeddings": 131072,
    "vocab_size": 128256,
}


def test_the_parameters_are_those_of_the_published_checkpoints() -> None:
    small = foresee(json.dumps(QWEN_1_5B).encode(), "x", headed=True)
    assert 2 * small.parameters == pytest.approx(3.09e9, rel=0.01)  # bytes as BF16
    large = foresee(json.dumps(LLAMA_8B).encode(), "x", headed=False)
    assert large.parameters == pytest.approx(8.03e9 - 128256 * 4096, rel=0.01)  # one matrix a token


def test_the_cache_of_a_token_is_as_known() -> None:
    for config, kib in ((QWEN_1_5B, 28), (LLAMA_8B, 128)):
        found = foresee(json.dumps(config).encode(), "x", headed=False)
        assert CacheType.F16.bytes(found.cell_values) == kib * 1024


def test_a_head_leaves_no_output_matrix() -> None:
    config = json.dumps(LLAMA_8B).encode()
    with_output, headed = (foresee(config, "x", headed=headed) for headed in (False, True))
    matrix = CacheType.Q8_0.bytes(128256 * 4096)
    assert with_output.file - headed.file == matrix


@pytest.mark.parametrize("config", [b"{}", b"[", b'{"hidden_size": "wide"}', b"\xff"])
def test_what_is_no_config_is_told(config: bytes) -> None:
    with pytest.raises(EngineError, match=r"config\.json of mine makes no sense"):
        foresee(config, "mine", headed=False)
