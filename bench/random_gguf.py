"""Model files of given shapes with random weights, for measuring memory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np

_Q4, _Q6, _F32 = (
    gguf.GGMLQuantizationType.Q4_K,
    gguf.GGMLQuantizationType.Q6_K,
    gguf.GGMLQuantizationType.F32,
)


@dataclass(frozen=True)
class ModelShape:
    name: str
    kind: str
    layers: int
    width: int
    inner: int
    heads: int
    cached_heads: int
    head: int
    vocabulary: int
    merges: int
    biases: bool = False


QWEN_1_5B = ModelShape("qwen2.5-1.5b", "qwen2", 28, 1536, 8960, 12, 2, 128, 151936, 151387, True)
LLAMA_1B = ModelShape("llama-3.2-1b", "llama", 16, 2048, 8192, 32, 8, 64, 128256, 280147)


def write(shape: ModelShape, path: Path) -> Path:
    """Write `shape` in the mixture of types that llama.cpp calls Q4_K_M, output matrix tied."""
    writer = gguf.GGUFWriter(path, shape.kind)
    _describe(writer, shape)
    noise = np.random.default_rng(0).integers(0, 48, 1 << 24, np.uint8)  # small as 16-bit floats

    def add(name: str, rows: int, columns: int, kind: gguf.GGMLQuantizationType) -> None:
        block, size = gguf.GGML_QUANT_SIZES[kind]
        data = np.resize(noise, (rows, columns // block * size))
        writer.add_tensor(f"{name}.weight", data, raw_dtype=kind)

    def ones(name: str, count: int) -> None:
        writer.add_tensor(name, np.ones(count, np.float32))

    queries, cached = shape.heads * shape.head, shape.cached_heads * shape.head
    add("token_embd", shape.vocabulary, shape.width, _Q6)
    ones("output_norm.weight", shape.width)
    for layer in range(shape.layers):
        wide = _Q6 if _more_bits(layer, shape.layers) else _Q4
        block = f"blk.{layer}."
        ones(f"{block}attn_norm.weight", shape.width)
        ones(f"{block}ffn_norm.weight", shape.width)
        add(f"{block}attn_q", queries, shape.width, _Q4)
        add(f"{block}attn_k", cached, shape.width, _Q4)
        add(f"{block}attn_v", cached, shape.width, wide)
        add(f"{block}attn_output", shape.width, queries, _Q4)
        if shape.biases:
            for name, count in (("q", queries), ("k", cached), ("v", cached)):
                ones(f"{block}attn_{name}.bias", count)
        add(f"{block}ffn_gate", shape.inner, shape.width, _Q4)
        add(f"{block}ffn_up", shape.inner, shape.width, _Q4)
        add(f"{block}ffn_down", shape.width, shape.inner, wide)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _more_bits(layer: int, layers: int) -> bool:
    """The layers to which Q4_K_M gives Q6_K: the first and last eighth, and every third between."""
    eighth = layers // 8
    return layer < eighth or layer >= 7 * layers // 8 or (layer - eighth) % 3 == 2


def _describe(writer: gguf.GGUFWriter, shape: ModelShape) -> None:
    writer.add_name(f"random {shape.name}")
    writer.add_block_count(shape.layers)
    writer.add_context_length(32768)
    writer.add_embedding_length(shape.width)
    writer.add_feed_forward_length(shape.inner)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.cached_heads)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_dimension_count(shape.head)
    writer.add_vocab_size(shape.vocabulary)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2" if shape.kind == "qwen2" else "llama-bpe")
    tokens = [f"token{i:06}" for i in range(shape.vocabulary)]
    writer.add_token_list(tokens)
    writer.add_token_types([1] * shape.vocabulary)
    writer.add_token_merges([f"to{i:06} ken" for i in range(shape.merges)])
    writer.add_eos_token_id(0)
