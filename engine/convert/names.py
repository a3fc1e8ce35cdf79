"""Which tensor of a checkpoint becomes which tensor of a GGUF file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from engine.checkpoints.tensors import StoredTensor, missing_text
from engine.convert.shape import Shape
from engine.errors import EngineError
from engine.protocol.events import Trouble

_EMBEDDING, _OUTPUT = "embed_tokens.weight", "lm_head.weight"
_TOP = {
    _EMBEDDING: "token_embd.weight",
    "norm.weight": "output_norm.weight",
    _OUTPUT: "output.weight",
}
_LAYER = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
_BIASED = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")
"""What has a bias in every Qwen2."""
_IN_LAYER = re.compile(r"layers\.(\d+)\.(.+)\.(weight|bias)")
_NEEDLESS = re.compile(r".*rotary_emb\.inv_freq")


@dataclass(frozen=True, slots=True)
class Planned:
    """A tensor to be written."""

    name: str
    source: StoredTensor
    rotated_heads: int = 0
    """Of queries and keys whose rotation has to be laid out anew; 0 for all others."""

    @property
    def shape(self) -> tuple[int, ...]:
        return self.source.shape


def plan_tensors(
    tensors: Mapping[str, StoredTensor], shape: Shape, head: set[str]
) -> list[Planned]:
    """The tensors of the body in the order in which they are written.

    The output matrix is left out where it is the embedding, and where a head scores: nobody reads
    the logits then.

    Args:
        head: names of tensors that belong to the head.

    Raises:
        EngineError: a tensor is missing, unknown, or of another shape than the config says.
    """
    found: dict[str, StoredTensor] = {}
    for name, tensor in tensors.items():
        if name in head or _NEEDLESS.fullmatch(name):
            continue
        if name == _OUTPUT and (shape.tied or head):
            continue
        found[_bare_name(name)] = tensor
    _check_config(found, shape)
    wanted = dict(_expected(shape, found, bare_output=bool(head)))
    _compare(found, wanted)
    return [Planned(_gguf_name(name), found[name], _rotated_heads(name, shape)) for name in wanted]


def _bare_name(name: str) -> str:
    """The name without `model.`, which the checkpoint of a decoder alone leaves out."""
    bare = name.removeprefix("model.")
    layer = _IN_LAYER.fullmatch(bare)
    if name == _OUTPUT or (bare in _TOP and bare != _OUTPUT) or (layer and layer[2] in _LAYER):
        return bare
    raise EngineError(
        Trouble.MODEL,
        f"The checkpoint has a tensor that Sapwood does not know: {name}.",
        "It is of another kind than its config says; look for a ready GGUF of it.",
    )


def _gguf_name(bare: str) -> str:
    layer = _IN_LAYER.fullmatch(bare)
    return f"blk.{layer[1]}.{_LAYER[layer[2]]}.{layer[3]}" if layer else _TOP[bare]


def _check_config(found: Mapping[str, StoredTensor], shape: Shape) -> None:
    """Hold what the config counts against what is there, whatever it says: a list of a thousand
    million layers is not to be made."""
    layers = {layer[1] for name in found if (layer := _IN_LAYER.fullmatch(name))}
    if len(layers) != shape.layers:
        raise _unfit(f"it has {len(layers):,} layers, and config.json tells of {shape.layers:,}")
    embedding = found.get(_EMBEDDING)
    if embedding is None or shape.vocabulary is None:
        return
    rows = embedding.shape[0] if embedding.shape else 0
    if rows != shape.vocabulary:
        raise _unfit(f"it knows {rows:,} tokens, and config.json tells of {shape.vocabulary:,}")


def _expected(
    shape: Shape, found: Mapping[str, StoredTensor], *, bare_output: bool
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Bare names and shapes of the body; the number of rows of the embedding is its own."""
    embedding = found.get(_EMBEDDING)
    rows = embedding.shape[0] if embedding is not None and embedding.shape else 0
    queries, keys = shape.heads * shape.head_width, shape.key_heads * shape.head_width
    yield _EMBEDDING, (rows, shape.width)
    matrices = {
        "self_attn.q_proj": (queries, shape.width),
        "self_attn.k_proj": (keys, shape.width),
        "self_attn.v_proj": (keys, shape.width),
        "self_attn.o_proj": (shape.width, queries),
        "mlp.gate_proj": (shape.inner, shape.width),
        "mlp.up_proj": (shape.inner, shape.width),
        "mlp.down_proj": (shape.width, shape.inner),
    }
    for layer in range(shape.layers):
        block = f"layers.{layer}"
        yield f"{block}.input_layernorm.weight", (shape.width,)
        yield f"{block}.post_attention_layernorm.weight", (shape.width,)
        for name, size in matrices.items():
            yield f"{block}.{name}.weight", size
            biased = shape.architecture == "qwen2" and name in _BIASED
            if biased or f"{block}.{name}.bias" in found:
                yield f"{block}.{name}.bias", size[:1]
    yield "norm.weight", (shape.width,)
    if not (shape.tied or bare_output):
        yield _OUTPUT, (rows, shape.width)


def _compare(found: Mapping[str, StoredTensor], wanted: Mapping[str, tuple[int, ...]]) -> None:
    prefixed = not found or any(tensor.name.startswith("model.") for tensor in found.values())
    prefix = "model." if prefixed else ""
    lost = [name if name == _OUTPUT else f"{prefix}{name}" for name in wanted if name not in found]
    if lost:
        raise EngineError(
            Trouble.MODEL,
            f"The checkpoint is not whole: of its {len(wanted):,} tensors, {missing_text(lost)}.",
            "Download all of its files again.",
        )
    for name, tensor in found.items():
        if name not in wanted or tensor.shape != wanted[name]:
            raise _unfit(
                f"{tensor.name} has the shape {tensor.shape}, and "
                f"{wanted.get(name, 'no such tensor')} is expected"
            )


def _unfit(how: str) -> EngineError:
    return EngineError(
        Trouble.MODEL,
        f"The checkpoint does not fit its config: {how}.",
        "Download all of its files again.",
    )


def _rotated_heads(name: str, shape: Shape) -> int:
    """Llama's files rotate neighbouring values, its checkpoints values half a head apart."""
    if shape.architecture != "llama":
        return 0
    if ".q_proj." in name:
        return shape.heads
    return shape.key_heads if ".k_proj." in name else 0
