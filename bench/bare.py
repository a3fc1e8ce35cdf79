"""llama.cpp with nothing around it: a context, one batch, and `llama_decode`."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import llama_cpp
import numpy as np

from engine.models.llama import LlamaWeights
from engine.models.threads import default_threads


class Bare:
    """Writes one token on each of `n` sequences at a time, without looking at the logits.

    Args:
        cells: size of the KV cache; with `unified=False` of all its streams together.
        sequences: most sequences there will be.
        unified: one cache for all sequences, as the engine has it, or a stream for each.
    """

    def __init__(
        self, weights: LlamaWeights, *, cells: int, sequences: int, unified: bool = True
    ) -> None:
        size = max(512, sequences)
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = cells
        params.n_batch = params.n_ubatch = size
        params.n_seq_max = params.n_outputs_max = sequences
        params.kv_unified = unified
        params.swa_full = True
        params.n_threads = params.n_threads_batch = default_threads()
        assert weights.pointer
        context = llama_cpp.llama_init_from_model(weights.pointer, params)
        if not context:
            raise MemoryError(f"no memory for {cells:,} cells")
        memory = llama_cpp.llama_get_memory(context)
        assert memory
        self._context, self._memory = context, memory
        self._native = llama_cpp.llama_batch_init(size, 0, 1)
        self._native_size = size
        self._token = np.ctypeslib.as_array(self._native.token, (size,))
        self._position = np.ctypeslib.as_array(self._native.pos, (size,))
        self._wanted = np.ctypeslib.as_array(self._native.logits, (size,))
        np.ctypeslib.as_array(self._native.n_seq_id, (size,))[:] = 1

    def prefill(self, tokens: Sequence[int], start: int = 0) -> None:
        """Append tokens, of which there are `start` already, to sequence 0."""
        for first in range(0, len(tokens), self._native_size):
            piece = tokens[first : first + self._native_size]
            self._fill([0] * len(piece), wanted=False)
            self._token[: len(piece)] = piece
            self._position[: len(piece)] = np.arange(len(piece)) + start + first
            self._decode()

    def share(self, targets: Sequence[int], end: int = -1, start: int = 0) -> None:
        """Give the tokens of sequence 0 from `start` to before `end` to other sequences too."""
        for target in targets:
            llama_cpp.llama_memory_seq_cp(self._memory, 0, target, start, end)

    def duplicate(self, source: int, targets: Sequence[int]) -> None:
        """Give `targets` cells of their own that hold what those of `source` do."""
        number = llama_cpp.llama_seq_id
        size = llama_cpp.llama_state_seq_get_size(self._context, number(source))
        state = (ctypes.c_uint8 * size)()
        llama_cpp.llama_state_seq_get_data(self._context, state, size, number(source))
        for target in targets:
            llama_cpp.llama_state_seq_set_data(self._context, state, size, number(target))

    def cut(self, sequence: int, start: int) -> None:
        """Drop the tokens of a sequence from `start` on."""
        llama_cpp.llama_memory_seq_rm(self._memory, sequence, start, -1)

    def clear(self) -> None:
        llama_cpp.llama_memory_clear(self._memory, False)

    def begin(self, n: int, position: int, token: int) -> None:
        """Get ready to write `token` on sequences 0 to n - 1 from `position` on."""
        self._fill(range(n), wanted=True)
        self._token[:n] = token
        self._position[:n] = position

    def step(self) -> None:
        """One token on every sequence."""
        self._decode()
        self._position[: self._native.n_tokens] += 1

    def _fill(self, sequences: Sequence[int], *, wanted: bool) -> None:
        self._native.n_tokens = len(sequences)
        self._wanted[: len(sequences)] = wanted
        for index, sequence in enumerate(sequences):
            self._native.seq_id[index][0] = sequence

    def _decode(self) -> None:
        status = llama_cpp.llama_decode(self._context, self._native)
        if status:
            raise RuntimeError(f"llama_decode failed with status {status}")
        llama_cpp.llama_synchronize(self._context)

    def close(self) -> None:
        llama_cpp.llama_batch_free(self._native)
        llama_cpp.llama_free(self._context)
