"""A model that no machine has memory for: a whole header, and a hole where the weights would be."""

from __future__ import annotations

import os
from pathlib import Path

import gguf
import numpy as np

LAYERS, WIDTH = 40, 65536


def write_giant(path: Path) -> None:
    """A Llama of four tebibytes, which takes a few kilobytes of the disk."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("giant")
    writer.add_block_count(LAYERS)
    writer.add_context_length(4096)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(4 * WIDTH)
    writer.add_head_count(512)
    for layer in range(LAYERS):
        for part in ("ffn_up", "ffn_down", "ffn_gate"):
            shape = (WIDTH, 4 * WIDTH)
            size = 2 * WIDTH * 4 * WIDTH
            writer.add_tensor_info(f"blk.{layer}.{part}.weight", shape, np.dtype(np.float16), size)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    writer.close()
    os.truncate(path, path.stat().st_size + LAYERS * 3 * 2 * WIDTH * 4 * WIDTH + 4096)
