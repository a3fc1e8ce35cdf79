"""What a checkpoint will take once it is converted, from its config.json alone.

The conversion makes GGUF files of Qwen2, Llama and Mistral checkpoints with all matrices as q8_0.
"""

from __future__ import annotations

import msgspec

from engine.errors import EngineError
from engine.memory.estimate import CacheType, Facts
from engine.protocol.events import Trouble

_VOCABULARY = 40
"""Bytes that an entry of a vocabulary takes in a file: its text, and that of the merge it is
made by (the header of SmolLM2 has 36 a token, that of Gemma 3 25)."""


class _Config(msgspec.Struct, frozen=True):
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int
    max_position_embeddings: int
    vocab_size: int
    num_key_value_heads: int | None = None
    head_dim: int | None = None
    tie_word_embeddings: bool = False


def foresee(config: bytes, name: str, *, headed: bool) -> Facts:
    """Size and shape of the file that a conversion makes.

    Args:
        config: the content of config.json.
        headed: a head of its own scores, so that there is no output matrix.

    Raises:
        EngineError: the config is not one of a model that is converted.
    """
    try:
        told = msgspec.json.decode(config, type=_Config)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise EngineError(
            Trouble.MODEL, f"The config.json of {name} makes no sense: {error}."
        ) from None
    width, inner, layers = told.hidden_size, told.intermediate_size, told.num_hidden_layers
    heads = max(1, told.num_attention_heads)
    head = told.head_dim or width // heads
    queries, keys = heads * head, (told.num_key_value_heads or heads) * head
    embedding = told.vocab_size * width
    body = layers * (2 * width * (queries + keys) + 3 * width * inner)
    output = 0 if headed or told.tie_word_embeddings else embedding
    tied = not output
    weights = CacheType.Q8_0.bytes(embedding + body + output)
    return Facts(
        name=name,
        file=weights + _VOCABULARY * told.vocab_size,
        embedding=CacheType.Q8_0.bytes(embedding),
        on_device=weights - (0 if tied else CacheType.Q8_0.bytes(embedding)),
        layers=layers,
        cell_values=layers * 2 * keys,
        masks=1,
        width=width,
        heads=heads,
        inner=inner,
        queries=queries,
        vocabulary=told.vocab_size,
        merges=told.vocab_size,
        parameters=body + embedding,
        trained_context=told.max_position_embeddings,
    )
