"""Writes a GGUF file, some rows of one tensor after another: little of it is ever in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from pathlib import Path
from typing import BinaryIO

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Kind
from gguf.quants import quant_shape_to_byte_shape, quantize

from engine.convert.names import Planned
from engine.convert.packing import Writer
from engine.convert.shape import Shape
from engine.convert.tokenizer import TokenizerFacts
from engine.errors import EngineError
from engine.protocol.events import Trouble

_PART = 1 << 23
"""Values converted at once: 32 MiB as float32."""
_FILE_TYPES = {
    Kind.F16: gguf.LlamaFileType.MOSTLY_F16,
    Kind.Q8_0: gguf.LlamaFileType.MOSTLY_Q8_0,
}


def body_bytes(plan: Sequence[Planned], matrices: Kind) -> int:
    """Bytes of the tensors in a file, without its header."""
    return sum(_nbytes(tensor.shape, _kind(tensor, matrices)) for tensor in plan)


def write_body(
    path: Path,
    plan: Sequence[Planned],
    shape: Shape,
    tokenizer: TokenizerFacts,
    texts: dict[str, str],
    matrices: Kind,
    progress: Callable[[float], None],
) -> None:
    """Write a whole model.

    Args:
        texts: further metadata.
        matrices: `F16` or `Q8_0`; what is no matrix stays in 32 bits.
        progress: told of the part that is written, from 0 to 1.

    Raises:
        EngineError: a tensor holds values that are no numbers, or that 16 bits cannot hold.
        OSError: the file cannot be written.
    """
    writer = Writer(path, shape.architecture)
    _describe(writer, shape, texts, matrices)
    _add_tokenizer(writer, tokenizer)
    if shape.rope_factors is not None:
        factors = shape.rope_factors
        writer.add_tensor_info("rope_freqs.weight", factors.shape, factors.dtype, factors.nbytes)
    for tensor in plan:
        kind = _kind(tensor, matrices)
        size = _nbytes(tensor.shape, kind)
        writer.add_tensor_info(tensor.name, tensor.shape, np.dtype(np.float32), size, kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    assert writer.fout is not None
    file = writer.fout[0]
    try:
        _write_tensors(file, writer, plan, shape, matrices, progress)
    finally:
        writer.close()


def _write_tensors(
    file: BinaryIO,
    writer: gguf.GGUFWriter,
    plan: Sequence[Planned],
    shape: Shape,
    matrices: Kind,
    progress: Callable[[float], None],
) -> None:
    writer.write_padding(file, file.tell())
    if shape.rope_factors is not None:
        file.write(shape.rope_factors.tobytes())
        writer.write_padding(file, shape.rope_factors.nbytes)
    total, done = sum(prod(tensor.shape) for tensor in plan), 0
    for tensor in plan:
        kind = _kind(tensor, matrices)
        for part in _parts(tensor):
            file.write(_converted(part, kind, tensor).tobytes())
            done += part.size
            progress(done / total)
        writer.write_padding(file, _nbytes(tensor.shape, kind))
    file.flush()


def _parts(tensor: Planned) -> Iterator[np.ndarray]:
    """Rows of a tensor, with the rotations of its heads laid out for llama.cpp."""
    rows = tensor.shape[0]
    head = rows // tensor.rotated_heads if tensor.rotated_heads else 1
    step = max(1, _PART // prod(tensor.shape[1:]) // head) * head
    for start in range(0, rows, step):
        part = tensor.source.rows(start, min(rows, start + step))
        if tensor.rotated_heads:
            halves = part.reshape(-1, 2, head // 2, *part.shape[1:])
            part = halves.swapaxes(1, 2).reshape(part.shape)
        yield part


def _converted(part: np.ndarray, kind: Kind, tensor: Planned) -> np.ndarray:
    if not np.isfinite(part).all():
        raise EngineError(
            Trouble.MODEL,
            f"The checkpoint is damaged: {tensor.source.name} holds values that are no numbers.",
            "Download it again.",
        )
    if kind is not Kind.F16:
        return quantize(part, kind)
    with np.errstate(over="ignore"):
        half = part.astype(np.float16)
    if not np.isfinite(half).all():
        raise EngineError(
            Trouble.MODEL, f"{tensor.source.name} holds values too large for 16 bits."
        )
    return half


def _kind(tensor: Planned, matrices: Kind) -> Kind:
    if len(tensor.shape) != 2:
        return Kind.F32
    block, _ = gguf.GGML_QUANT_SIZES[matrices]
    return matrices if tensor.shape[1] % block == 0 else Kind.F16


def _nbytes(shape: tuple[int, ...], kind: Kind) -> int:
    if kind in (Kind.F16, Kind.F32):
        return prod(shape) * (2 if kind is Kind.F16 else 4)
    return prod(quant_shape_to_byte_shape(shape, kind))


def _describe(writer: gguf.GGUFWriter, shape: Shape, texts: dict[str, str], matrices: Kind) -> None:
    for key, text in texts.items():
        writer.add_string(key, text)
    writer.add_file_type(_FILE_TYPES[matrices])
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.width)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.inner)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.key_heads)
    writer.add_rope_dimension_count(shape.head_width)
    if shape.head_width * shape.heads != shape.width:
        writer.add_key_length(shape.head_width)
        writer.add_value_length(shape.head_width)
    writer.add_rope_freq_base(shape.rope_base)
    writer.add_layer_norm_rms_eps(shape.epsilon)
    if shape.linear_scaling is not None:
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(shape.linear_scaling)
    if shape.yarn is not None:
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(shape.yarn[0])
        writer.add_rope_scaling_orig_ctx_len(shape.yarn[1])


def _add_tokenizer(writer: gguf.GGUFWriter, tokenizer: TokenizerFacts) -> None:
    writer.add_vocab_size(len(tokenizer.tokens))
    writer.add_tokenizer_model(tokenizer.model)
    writer.add_tokenizer_pre(tokenizer.split)
    writer.add_token_list(tokenizer.tokens)
    writer.add_token_types(tokenizer.types)
    if tokenizer.scores is not None:
        writer.add_token_scores(tokenizer.scores)
        writer.add_add_space_prefix(tokenizer.space_first)
    if tokenizer.merges is not None:
        writer.add_token_merges(tokenizer.merges)
    for role, add in (
        ("bos", writer.add_bos_token_id),
        ("eos", writer.add_eos_token_id),
        ("pad", writer.add_pad_token_id),
        ("unk", writer.add_unk_token_id),
    ):
        if role in tokenizer.special:
            add(tokenizer.special[role])
    writer.add_add_bos_token(tokenizer.add_bos)
    if tokenizer.chat_template:
        writer.add_chat_template(tokenizer.chat_template)
