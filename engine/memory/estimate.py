"""The memory a model will take, predicted from its GGUF header before anything is loaded.

The rules describe llama.cpp 0.5.0 (llama-cpp-python 0.3.36) as `engine.models.llama` opens it:
weights mapped into memory, one unified cache of full size, flash attention on by itself. Each was
read off llama.cpp's own log or the resident set (docs/memory.md has the measurements).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from math import prod

from engine.memory.sizes import MIB
from engine.models.gguf import Header


class CacheType(StrEnum):
    """How the values of a cache are stored. Blocks of 32: 34 bytes as q8_0, 18 as q4_0."""

    F16 = "f16"
    Q8_0 = "q8_0"
    Q4_0 = "q4_0"

    def bytes(self, values: int) -> int:
        """Bytes that `values` values take."""
        return values * {"f16": 64, "q8_0": 34, "q4_0": 18}[self] // 32


PROCESS = 50 * MIB
"""A process with Python, numpy and llama.cpp: 42 MiB once imported, and 6 MiB on the first load
that no model explains (measured, x86-64 Linux)."""
WORKER = 86 * MIB
"""The worker's process, before and besides its models: 56 MiB when it is ready (measured), and what
a search keeps of its tree; with 80, one of 40 random budgets was exceeded by 1 MiB. More where a
GPU driver is loaded as well: that is in the margin."""

_CONTEXT = 2 * MIB
"""Graphs and book-keeping of a context: 1 to 2 MiB (measured)."""
_TOKEN, _MERGE = 132, 135
"""Bytes of a vocabulary's entry and of a merge (measured: Gemma 3, 262,144 tokens without merges,
takes 33 MiB; SmolLM2, 49,152 tokens and 48,900 merges, 12.5 MiB)."""


@dataclass(frozen=True, slots=True)
class Setting:
    """How `LlamaModel` opens a context."""

    cells: int
    """Tokens the cache holds."""
    sequences: int
    outputs: int
    """Positions of one batch whose logits are read."""
    rows: int = 512
    """Tokens that are computed at once."""
    cache: CacheType = CacheType.F16
    precise: bool = False
    """Attention is summed in 32 bits, over a matrix of all heads, tokens and cells."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a header says of size and shape."""

    name: str
    file: int
    """Bytes of the file, all of it resident once mapped."""
    embedding: int
    """Bytes of the token embedding, which llama.cpp leaves in RAM on a GPU too."""
    on_device: int
    """Bytes of weights that go to a GPU with all layers; a tied output matrix is one of them."""
    layers: int
    cell_values: int
    """Values that all layers cache for one token."""
    masks: int
    """Attention masks of a graph: one, or two where some layers have a sliding window."""
    width: int
    heads: int
    inner: int
    """Width of the feed-forward layers."""
    queries: int
    """Heads times head size, of one layer."""
    vocabulary: int
    merges: int
    parameters: int
    """Weights that one token is multiplied with."""
    trained_context: int
    surplus: int = 0
    """Bytes that it was last measured to take beyond the prediction (`Records.surplus`)."""
    turns: Mapping[str, float] = field(default_factory=dict)
    """Of strategies in which it has taken turns: measured seconds a byte (`Records.turns`)."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """Bytes that a model is expected to take. It is an estimate: see `Measurement` for the other.

    The cache, compute buffer and weights are on the device; the rest is always in RAM.
    """

    weights: int
    embedding: int
    """What stays in RAM of a model on a GPU."""
    cache: int
    compute: int
    outputs: int
    """Logits handed to the caller."""
    vocabulary: int
    book_keeping: int
    surplus: int

    @property
    def total(self) -> int:
        return sum(getattr(self, one.name) for one in fields(self))

    @property
    def on_device(self) -> int:
        """The part that a GPU holds when the model is on one."""
        return self.weights + self.cache + self.compute + self.surplus


def facts(header: Header, file: int) -> Facts:
    """Read sizes and shape off a header.

    Args:
        file: size of the file in bytes.
    """
    kind = header.text("general.architecture")

    def number(key: str, default: int = 0) -> int:
        return header.number(f"{kind}.{key}", default)

    sizes = _tensor_bytes(header, file)
    shapes = {tensor.name: tensor.shape for tensor in header.tensors}
    tied = "output.weight" not in shapes
    embedding = sizes.get("token_embd.weight", 0)
    matrices = [
        tensor
        for tensor in header.tensors
        if len(tensor.shape) > 1 and (tied or tensor.name != "token_embd.weight")
    ]
    width = number("embedding_length")
    heads = max(1, number("attention.head_count", 1))
    head = number("attention.key_length", width // heads)
    layers = number("block_count")
    return Facts(
        name=header.text("general.name"),
        file=file,
        embedding=embedding,
        on_device=sum(sizes.values()) - (0 if tied else embedding),
        layers=layers,
        cell_values=sum(
            _cached_values(header, shapes, layer, head)
            for layer in range(layers - number("attention.shared_kv_layers"))
        ),
        masks=2 if number("attention.sliding_window") else 1,
        width=width,
        heads=heads,
        inner=number("feed_forward_length"),
        queries=heads * head,
        vocabulary=header.number("tokenizer.ggml.tokens", number("vocab_size")),
        merges=header.number("tokenizer.ggml.merges"),
        parameters=sum(prod(tensor.shape) for tensor in matrices),
        trained_context=number("context_length"),
    )


def predict(model: Facts, setting: Setting, *, gpu: bool = False) -> Prediction:
    """Bytes of a model and one context, besides `PROCESS`.

    Args:
        gpu: all layers are on a GPU.
    """
    tokens = _graph_tokens(setting)
    row = model.vocabulary * 4
    logits = min(setting.outputs, setting.rows) * row
    activations = 4 * tokens * (model.width + model.inner)
    # A graph's largest moment is either inside a layer (attention, and three of each activation)
    # or at its end (the logits, and two of the narrower one). The CPU adds what it quantises.
    inside = attention_bytes(model, setting) * setting.cells + 3 * activations
    at_end = logits + 8 * tokens * model.width
    return Prediction(
        weights=model.on_device if gpu else model.file,
        embedding=model.embedding if gpu else 0,
        cache=setting.cells * setting.cache.bytes(model.cell_values),
        compute=max(inside, at_end) + (0 if gpu else tokens * model.inner * 34 // 32),
        outputs=setting.outputs * row,
        vocabulary=model.vocabulary * _TOKEN + model.merges * _MERGE,
        book_keeping=_CONTEXT,
        surplus=model.surplus,
    )


def attention_bytes(model: Facts, setting: Setting) -> int:
    """Bytes that attention takes for each cell: 16 bits of a mask for each token of a graph, or 32
    and as many for each head."""
    values = 4 * (model.masks + model.heads) if setting.precise else 2 * model.masks
    return values * _graph_tokens(setting)


def _graph_tokens(setting: Setting) -> int:
    """Tokens a graph is made for: all rows, in equal parts for all sequences."""
    return -(-setting.rows // setting.sequences) * setting.sequences


def _tensor_bytes(header: Header, file: int) -> dict[str, int]:
    """Bytes of each tensor up to where the next begins: true for any type, known or not."""
    ordered = sorted(header.tensors, key=lambda tensor: tensor.offset)
    ends = [tensor.offset for tensor in ordered[1:]] + [file - header.data_start]
    return {t.name: end - t.offset for t, end in zip(ordered, ends, strict=True)}


def _cached_values(
    header: Header, shapes: dict[str, tuple[int, ...]], layer: int, head: int
) -> int:
    """Values a layer caches for a token. Its own tensors tell how many heads it has."""
    rows = [shapes.get(f"blk.{layer}.attn_{part}.weight", ()) for part in "kv"]
    if all(len(shape) > 1 for shape in rows):
        return sum(shape[1] for shape in rows)
    kind = header.text("general.architecture")
    heads = header.number(f"{kind}.attention.head_count", 1)
    cached = header.number(f"{kind}.attention.head_count_kv", heads)
    return cached * (head + header.number(f"{kind}.attention.value_length", head))
