"""The memory that a checkpoint of the model hub will take on torch, before anything is loaded."""

from __future__ import annotations

from math import prod
from pathlib import Path

from engine.checkpoints.folder import open_checkpoint
from engine.memory.estimate import Facts
from engine.memory.sizes import MIB

_TORCH = 320 * MIB
"""What torch and transformers take in a process, from their import to a first batch: 292 to 340 MiB
(measured with torch 2.13 and transformers 5 on x86-64 Linux: `python -m bench.memory --torch`)."""


def folder_facts(folder: Path) -> Facts:
    """Size and shape of a checkpoint, as `engine.models.hf` opens it.

    A CPU computes in float32: 4 bytes a weight, and a cached value takes the room of two 16-bit
    ones. A GPU computes in 16 bits.

    Raises:
        EngineError: it is no checkpoint, or not whole.
    """
    checkpoint = open_checkpoint(folder)

    def number(key: str, default: int = 0) -> int:
        found = checkpoint.config.get(key)
        return found if isinstance(found, int) else default

    sizes = {name: prod(tensor.shape) for name, tensor in checkpoint.tensors.items()}
    matrices = {n: s for n, s in sizes.items() if len(checkpoint.tensors[n].shape) > 1}
    embedding = next((s for n, s in sizes.items() if n.endswith("embed_tokens.weight")), 0)
    tied = "lm_head.weight" not in sizes
    weights = sum(sizes.values())
    heads = max(1, number("num_attention_heads", 1))
    width = number("hidden_size")
    head = number("head_dim", width // heads)
    layers = number("num_hidden_layers")
    return Facts(
        name=folder.resolve().name,
        file=4 * weights,
        embedding=0,
        on_device=2 * weights,
        layers=layers,
        cell_values=2 * layers * 2 * number("num_key_value_heads", heads) * head,
        masks=2 if number("sliding_window") else 1,
        width=width,
        heads=heads,
        inner=number("intermediate_size"),
        queries=heads * head,
        vocabulary=number("vocab_size"),
        merges=number("vocab_size"),
        parameters=sum(matrices.values()) - (0 if tied else embedding),
        trained_context=number("max_position_embeddings"),
        surplus=_TORCH,
    )
