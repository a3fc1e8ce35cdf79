"""Which tensor of a checkpoint becomes which tensor of a GGUF file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from engine.checkpoints.tensors import StoredTensor
from engine.convert.shape import Shape
from engine.errors import EngineError
from engine.protocol.events import Trouble

_TOP = {"embed_tokens": "token_embd", "norm": "output_norm"}
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
_IN_LAYER = re.compile(r"layers\.(\d+)\.(.+)\.(weight|bias)")
_AT_TOP = re.compile(r"(embed_tokens|norm)\.(weight)")
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
        if name == "lm_head.weight":
            if not (shape.tied or head):
                found["output.weight"] = tensor
            continue
        found[_gguf_name(name)] = tensor
    wanted = dict(_expected(shape, found, bare_output=bool(head)))
    _compare(found, wanted)
    return [
        Planned(name, found[name], _rotated_heads(name, shape)) for name in wanted if name in found
    ]


def _gguf_name(name: str) -> str:
    bare = name.removeprefix("model.")
    if top := _AT_TOP.fullmatch(bare):
        return f"{_TOP[top[1]]}.{top[2]}"
    layer = _IN_LAYER.fullmatch(bare)
    if layer is None or layer[2] not in _LAYER:
        raise EngineError(
            Trouble.MODEL,
            f"The checkpoint has a tensor that Sapwood does not know: {name}.",
            "It is of another kind than its config says; look for a ready GGUF of it.",
        )
    return f"blk.{layer[1]}.{_LAYER[layer[2]]}.{layer[3]}"


def _expected(
    shape: Shape, found: Mapping[str, StoredTensor], *, bare_output: bool
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Names and shapes of the body; the number of rows of the embedding is its own."""
    embedding = found.get("token_embd.weight")
    rows = embedding.shape[0] if embedding is not None and embedding.shape else 0
    queries, keys = shape.heads * shape.head_width, shape.key_heads * shape.head_width
    yield "token_embd.weight", (rows, shape.width)
    matrices = {
        "attn_q": (queries, shape.width),
        "attn_k": (keys, shape.width),
        "attn_v": (keys, shape.width),
        "attn_output": (shape.width, queries),
        "ffn_gate": (shape.inner, shape.width),
        "ffn_up": (shape.inner, shape.width),
        "ffn_down": (shape.width, shape.inner),
    }
    for layer in range(shape.layers):
        block = f"blk.{layer}"
        yield f"{block}.attn_norm.weight", (shape.width,)
        yield f"{block}.ffn_norm.weight", (shape.width,)
        for name, size in matrices.items():
            yield f"{block}.{name}.weight", size
            biased = shape.architecture == "qwen2" and name in ("attn_q", "attn_k", "attn_v")
            if biased or f"{block}.{name}.bias" in found:
                yield f"{block}.{name}.bias", size[:1]
    yield "output_norm.weight", (shape.width,)
    if not (shape.tied or bare_output):
        yield "output.weight", (rows, shape.width)


def _compare(found: Mapping[str, StoredTensor], wanted: Mapping[str, tuple[int, ...]]) -> None:
    if missing := [name for name in wanted if name not in found]:
        raise EngineError(
            Trouble.MODEL,
            f"The checkpoint is not whole: {missing[0]} and {len(missing) - 1} more of its "
            f"{len(wanted)} tensors are missing.",
            "Download all of its files again.",
        )
    for name, tensor in found.items():
        if name not in wanted or tensor.shape != wanted[name]:
            raise EngineError(
                Trouble.MODEL,
                f"The checkpoint does not fit its config: {tensor.name} has the shape "
                f"{tensor.shape}, and {wanted.get(name, 'no such tensor')} is expected.",
                "Download all of its files again.",
            )


def _rotated_heads(name: str, shape: Shape) -> int:
    """Llama's files rotate neighbouring values, its checkpoints values half a head apart."""
    if shape.architecture != "llama":
        return 0
    if ".attn_q." in name:
        return shape.heads
    return shape.key_heads if ".attn_k." in name else 0
