"""What a checkpoint's config says of its body, in the words of GGUF."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import pi
from typing import Any

import msgspec
import numpy as np

from engine.errors import EngineError
from engine.protocol.events import Trouble

_ARCHITECTURES = {"qwen2": "qwen2", "llama": "llama", "mistral": "llama"}
_HEADED = (
    "ForPrmModel",
    "ForProcessRewardModel",
    "ForRewardModel",
    "ForSequenceClassification",
    "ForTokenClassification",
)
_LARGEST = 1 << 24
"""More than any size of a published model, contexts of ten million tokens too."""
_FARTHEST = 1e30
"""No 32-bit number of a GGUF file overflows below it."""


class _Rope(msgspec.Struct, frozen=True):
    rope_type: str | None = None
    type: str | None = None
    rope_theta: float | None = None
    factor: float = 1.0
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    original_max_position_embeddings: int = 8192


class _Config(msgspec.Struct, frozen=True):
    model_type: str
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int
    max_position_embeddings: int
    rms_norm_eps: float
    vocab_size: int | None = None
    num_key_value_heads: int | None = None
    head_dim: int | None = None
    rope_theta: float | None = None
    rope_scaling: _Rope | None = None
    rope_parameters: _Rope | None = None
    tie_word_embeddings: bool = False
    sliding_window: int | None = None
    use_sliding_window: bool | None = None
    hidden_act: str = "silu"
    quantization_config: dict[str, Any] | None = None


_SIZES = (
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "intermediate_size",
    "vocab_size",
    "max_position_embeddings",
)


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes and constants of a decoder."""

    architecture: str
    """`qwen2` or `llama`, which is Mistral's too."""
    layers: int
    width: int
    inner: int
    heads: int
    key_heads: int
    head_width: int
    context: int
    rope_base: float
    rope_factors: np.ndarray | None
    """What Llama 3 divides each rotation's frequency by, float32 (head_width / 2)."""
    linear_scaling: float | None
    yarn: tuple[float, int] | None
    """Factor and original context."""
    epsilon: float
    tied: bool
    """The output matrix is the embedding."""
    vocabulary: int | None
    """Rows of the embedding, where the config tells."""


def read_shape(config: dict[str, object]) -> Shape:
    """The shape that a config.json tells of.

    Raises:
        EngineError: it is of an architecture that is not converted, or makes no sense.
    """
    kind = config.get("model_type")
    if kind not in _ARCHITECTURES:
        raise EngineError(
            Trouble.MODEL,
            f"A checkpoint of the kind '{kind}' cannot be converted.",
            "Sapwood converts Qwen2, Llama and Mistral; look for a ready GGUF of others.",
        )
    try:
        told = msgspec.convert(config, _Config, strict=False)
    except msgspec.ValidationError as error:
        raise _senseless(str(error)) from None
    _refuse(told)
    head_width = told.head_dim or told.hidden_size // told.num_attention_heads
    rope = told.rope_scaling or told.rope_parameters or _Rope()
    base = told.rope_theta or rope.rope_theta or 10_000.0
    _check_numbers(told, rope, base, head_width)
    factors = linear = yarn = None
    match rope.rope_type or rope.type or "default":
        case "default":
            pass
        case "llama3":
            factors = _llama3_factors(rope, base, head_width)
        case "linear":
            linear = rope.factor
        case "yarn":
            yarn = (rope.factor, rope.original_max_position_embeddings)
        case other:
            raise EngineError(
                Trouble.MODEL, f"A checkpoint with '{other}' positions cannot be converted."
            )
    return Shape(
        architecture=_ARCHITECTURES[told.model_type],
        layers=told.num_hidden_layers,
        width=told.hidden_size,
        inner=told.intermediate_size,
        heads=told.num_attention_heads,
        key_heads=told.num_key_value_heads or told.num_attention_heads,
        head_width=head_width,
        context=_context(told),
        rope_base=base,
        rope_factors=factors,
        linear_scaling=linear,
        yarn=yarn,
        epsilon=told.rms_norm_eps,
        tied=told.tie_word_embeddings,
        vocabulary=told.vocab_size,
    )


def headed_kind(config: Mapping[str, object]) -> str | None:
    """What a config.json calls its model, where that is one with a head for scores."""
    kinds = config.get("architectures")
    for kind in kinds if isinstance(kinds, list) else ():
        if isinstance(kind, str) and kind.endswith(_HEADED):
            return kind
    return None


def _refuse(told: _Config) -> None:
    for name in _SIZES:
        size = getattr(told, name)
        if size is not None and not 1 <= size <= _LARGEST:
            raise _senseless(f"{name} is {size:,}")
    if told.hidden_act != "silu":
        raise EngineError(
            Trouble.MODEL, f"A checkpoint with '{told.hidden_act}' units cannot be converted."
        )
    if told.quantization_config:
        raise EngineError(
            Trouble.MODEL,
            "The checkpoint is quantised already, in a way that cannot be converted.",
            "Take the original one in 16 or 32 bits.",
        )


def _check_numbers(told: _Config, rope: _Rope, base: float, head_width: int) -> None:
    heads, key_heads = told.num_attention_heads, told.num_key_value_heads
    if key_heads and heads % key_heads:
        raise _senseless(f"{heads:,} heads cannot share {key_heads:,}")
    if head_width < 1 or head_width % 2:
        raise _senseless(f"a head has {head_width:,} values, which cannot be rotated in pairs")
    if not 0 < told.rms_norm_eps < 1:
        raise _senseless(f"rms_norm_eps is {told.rms_norm_eps:g}")
    if not 0 < base < _FARTHEST:
        raise _senseless(f"rope_theta is {base:g}")
    if (told.sliding_window or 0) < 0:
        raise _senseless(f"sliding_window is {told.sliding_window:,}")
    bands = 0 < rope.low_freq_factor < rope.high_freq_factor < _FARTHEST
    context = 1 <= rope.original_max_position_embeddings <= _LARGEST
    if not (bands and context and 0 < rope.factor < _FARTHEST):
        raise _senseless("no text can be stretched as its rope_scaling says")


def _senseless(how: str) -> EngineError:
    return EngineError(Trouble.MODEL, f"config.json makes no sense: {how}.", "Download it again.")


def _context(told: _Config) -> int:
    """llama.cpp lets these architectures look at everything; a window ends the comparable part."""
    slides = told.use_sliding_window or (
        told.model_type == "mistral" and told.use_sliding_window is None
    )
    if slides and told.sliding_window:
        return min(told.max_position_embeddings, told.sliding_window)
    return told.max_position_embeddings


def _llama3_factors(rope: _Rope, base: float, head_width: int) -> np.ndarray:
    """Long wavelengths are stretched by the whole factor, short ones not at all."""
    context = rope.original_max_position_embeddings
    lengths = 2 * pi * base ** (np.arange(0, head_width, 2) / head_width)
    low, high = rope.low_freq_factor, rope.high_freq_factor
    between = np.clip((context / lengths - low) / (high - low), 0, 1)
    return (1 / ((1 - between) / rope.factor + between)).astype(np.float32)
