"""Sequences of one llama.cpp model side by side, which can be forked."""

from __future__ import annotations

import ctypes
from pathlib import Path

import llama_cpp as lib
import numpy as np

from engine.seedling.tokenizer import tokenizer


class Lanes:
    """`count` sequences in one cache; a fork copies no state."""

    def __init__(self, path: Path, count: int, room: int = 4096, threads: int = 1) -> None:
        lib.llama_backend_init()
        lib.llama_log_set(_SILENT, ctypes.c_void_p(0))
        model = lib.llama_model_load_from_file(str(path).encode(), lib.llama_model_default_params())
        if not model:
            raise RuntimeError(f"cannot load {path}")
        parameters = lib.llama_context_default_params()
        parameters.n_ctx, parameters.n_batch, parameters.n_ubatch = room, room, 512
        parameters.n_seq_max, parameters.kv_unified = count, True
        parameters.n_threads = parameters.n_threads_batch = threads
        context = lib.llama_init_from_model(model, parameters)
        vocabulary = lib.llama_model_get_vocab(model)
        assert context
        assert vocabulary
        memory = lib.llama_get_memory(context)
        assert memory
        self._context, self._memory, self._vocabulary = context, memory, vocabulary
        self._batch = lib.llama_batch_init(room, 0, 1)
        self._width = len(tokenizer())
        self.lengths = [0] * count

    def tokenize(self, text: str) -> list[int]:
        """llama.cpp's tokens, special ones recognised."""
        data = text.encode()
        found = (lib.llama_token * (len(data) + 8))()
        number = lib.llama_tokenize(
            self._vocabulary, data, len(data), found, len(found), True, True
        )
        return list(found[:number])

    def clear(self) -> None:
        lib.llama_memory_clear(self._memory, False)
        self.lengths = [0] * len(self.lengths)

    def fork(self, source: int, target: int) -> None:
        """`target` becomes a copy of `source`."""
        self.drop(target)
        lib.llama_memory_seq_cp(self._memory, source, target, -1, -1)
        self.lengths[target] = self.lengths[source]

    def drop(self, lane: int) -> None:
        lib.llama_memory_seq_rm(self._memory, lane, -1, -1)
        self.lengths[lane] = 0

    def extend(self, added: dict[int, list[int]]) -> dict[int, np.ndarray]:
        """Append tokens to lanes; the logits after the last token of each."""
        batch, size = self._batch, 0
        ends: dict[int, int] = {}
        for lane, tokens in added.items():
            for token in tokens:
                batch.token[size] = token
                batch.pos[size] = self.lengths[lane]
                batch.n_seq_id[size] = 1
                batch.seq_id[size][0] = lane
                batch.logits[size] = 0
                self.lengths[lane] += 1
                size += 1
            batch.logits[size - 1] = 1
            ends[lane] = size - 1
        batch.n_tokens = size
        if lib.llama_decode(self._context, batch) != 0:
            raise RuntimeError("llama_decode failed")
        return {
            lane: np.ctypeslib.as_array(
                lib.llama_get_logits_ith(self._context, end), (self._width,)
            ).copy()
            for lane, end in ends.items()
        }


@lib.llama_log_callback
def _SILENT(level: int, text: bytes, data: ctypes.c_void_p) -> None:  # noqa: N802
    """llama.cpp's messages go nowhere."""
