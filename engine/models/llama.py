"""Token model on llama.cpp: one unified KV cache used as a tree.

A path is a llama.cpp sequence id. With a unified cache a fork is a copy of metadata, and a batch
entry may belong to several sequences at once, so a shared prefix is computed and stored once.
Sliding-window models keep a full-size cache, since a fork needs every cell of its source.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import llama_cpp
import numpy as np

from engine.errors import EngineError
from engine.models import native_log
from engine.models.base import Interrupted, Span
from engine.models.cells import CellCount
from engine.models.gguf import Header, read_header
from engine.models.llama_vocabulary import LlamaVocabulary
from engine.models.pieces import pieces
from engine.models.stop import StopSignal
from engine.models.threads import default_threads
from engine.protocol.events import Trouble

MAX_PATHS = 255
"""llama.cpp can tell 256 sequences apart; one of them holds what was dropped."""
_EXACT_ROWS = 56
"""Tokens a CPU computes at once. From 64 on, llama.cpp's attention sums in another way, and the
same path would get other logits in a large batch than in a small one."""
_LITTER = 2048
"""Dropped cells that are left where they are."""
_ABORTED = 2


class LlamaWeights:
    """A model file in memory; contexts are opened on it.

    Args:
        header: the file's header, if it is read already.
        progress: told of the part that is loaded, from 0 to 1; stops loading by answering False.

    Raises:
        EngineError: the file is missing, damaged, or of an architecture that cannot be forked.
        Interrupted: `progress` stopped it.
    """

    def __init__(
        self,
        path: Path,
        header: Header | None = None,
        progress: Callable[[float], bool] = lambda done: True,
    ) -> None:
        self.path = path
        self.header = header or read_header(path)
        native_log.install()
        params = llama_cpp.llama_model_default_params()
        if llama_cpp.llama_supports_gpu_offload():
            params.n_gpu_layers = -1
        stopped = False

        @llama_cpp.llama_progress_callback
        def tell(done: float, _data: object) -> bool:
            nonlocal stopped
            stopped = not progress(done)
            return not stopped

        params.progress_callback = tell
        self.pointer: Any = llama_cpp.llama_model_load_from_file(os.fsencode(path), params)
        if stopped:
            self.close()
            raise Interrupted
        if not self.pointer:
            reason = native_log.last_error() or "no reason given"
            raise EngineError(
                Trouble.MODEL,
                f"llama.cpp cannot load {path.name}: {reason}.",
                "The file may be damaged, need more memory than is free, or be newer than the "
                "installed llama-cpp-python.",
            )
        try:
            self._refuse_what_cannot_fork()
        except EngineError:
            self.close()
            raise
        self.vocabulary = LlamaVocabulary(llama_cpp.llama_model_get_vocab(self.pointer))
        self.name = self.header.text("general.name") or path.stem
        self.trained_context = int(llama_cpp.llama_model_n_ctx_train(self.pointer))
        self.width = int(llama_cpp.llama_model_n_embd(self.pointer))
        """Values of a hidden state."""

    def _refuse_what_cannot_fork(self) -> None:
        recurrent = llama_cpp.llama_model_is_recurrent(self.pointer)
        if recurrent or llama_cpp.llama_model_is_hybrid(self.pointer):
            raise EngineError(
                Trouble.MODEL,
                f"{self.path.name} keeps a recurrent state, which cannot be shared by the paths "
                "of a search.",
                "Choose a model with attention in every layer (Qwen2.5, Llama 3, Gemma 3 …).",
            )
        if not llama_cpp.llama_model_has_decoder(self.pointer):
            raise EngineError(
                Trouble.MODEL, f"{self.path.name} is an encoder and cannot write text."
            )

    @property
    def cell_bytes(self) -> int:
        """Bytes of one KV cell at 16 bits a value."""
        layers = llama_cpp.llama_model_n_layer(self.pointer)
        heads = max(1, llama_cpp.llama_model_n_head(self.pointer))
        width = llama_cpp.llama_model_n_embd(self.pointer) // heads
        architecture = self.header.text("general.architecture")
        key = self.header.number(f"{architecture}.attention.key_length", width)
        value = self.header.number(f"{architecture}.attention.value_length", width)
        return layers * llama_cpp.llama_model_n_head_kv(self.pointer) * (key + value) * 2

    def close(self) -> None:
        if self.pointer:
            llama_cpp.llama_model_free(self.pointer)
            self.pointer = None


class LlamaModel:
    """A KV cache of `capacity` cells on some weights; implements `TokenModel`.

    Args:
        paths: sequence ids, at most `MAX_PATHS`; each reserves room for one row of logits.
        outputs: positions whose logits one decode may return; sizes llama.cpp's output buffer
            (vocabulary x outputs x 4 bytes).
        batch: tokens one decode may take.
        threads: compute threads; by default one is left to the rest of the machine.
    """

    def __init__(
        self,
        weights: LlamaWeights,
        *,
        capacity: int,
        paths: int,
        outputs: int,
        stop: StopSignal,
        batch: int = 512,
        threads: int | None = None,
    ) -> None:
        self.name = weights.name
        self.vocabulary = weights.vocabulary
        self.trained_context = weights.trained_context
        self.max_paths = min(paths, MAX_PATHS)
        self._outputs = max(outputs, self.max_paths + 1)  # llama.cpp takes no fewer
        self._batch_size = max(batch, self._outputs)
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = capacity
        params.n_batch = params.n_ubatch = self._batch_size
        if not llama_cpp.llama_supports_gpu_offload():
            params.n_ubatch = min(self._batch_size, _EXACT_ROWS)
        params.n_seq_max = self.max_paths + 1
        params.n_outputs_max = self._outputs
        params.kv_unified = True
        params.swa_full = True
        params.n_threads = params.n_threads_batch = threads or default_threads()
        self._context: Any = llama_cpp.llama_init_from_model(weights.pointer, params)
        if not self._context:
            raise EngineError(
                Trouble.MEMORY,
                f"There is no memory for {capacity:,} cells of {weights.name}: "
                f"{native_log.last_error() or 'llama.cpp gave no reason'}.",
                "Use a smaller --n or --context, or a smaller model.",
            )
        self.watch(stop)
        self.capacity = int(llama_cpp.llama_n_ctx(self._context))
        self._memory: Any = llama_cpp.llama_get_memory(self._context)
        self._cells = CellCount()
        self._taken = 0
        """Cells in use or dropped and not yet swept."""
        self._batch = _Batch(self._batch_size)
        self._width = weights.width
        self._gives_hidden = False

    def watch(self, stop: StopSignal) -> None:
        """Give up computing when `stop` is set, from now on."""
        self._stop = stop
        llama_cpp.llama_set_abort_callback(
            self._context, _abort_callback(), ctypes.cast(stop.flag, ctypes.c_void_p)
        )

    @property
    def used(self) -> int:
        return self._cells.used

    def length(self, path: int) -> int:
        return self._cells.length(path)

    def fork(self, source: int, target: int) -> None:
        llama_cpp.llama_memory_seq_cp(self._memory, source, target, -1, -1)
        self._cells.fork(source, target)

    def drop(self, path: int) -> None:
        # llama.cpp would fill the freed cells at once, with tokens of paths that have others far
        # behind them. Sums over cells in another order differ in their last bits, so the same path
        # would come out differently in another run's company. Dropped cells stay taken instead.
        length = self._cells.length(path)
        freed = self._cells.drop(path)
        if freed:
            litter = self.max_paths
            llama_cpp.llama_memory_seq_cp(self._memory, path, litter, length - freed, -1)
        llama_cpp.llama_memory_seq_rm(self._memory, path, -1, -1)

    def _sweep(self, needed: int) -> None:
        """Free dropped cells when they are in the way of `needed` new ones, or too many."""
        litter = self._taken - self._cells.used
        if self._taken + needed > self.capacity or litter > _LITTER:
            llama_cpp.llama_memory_seq_rm(self._memory, self.max_paths, -1, -1)
            self._taken = self._cells.used
        self._taken += needed

    def reset(self) -> None:
        llama_cpp.llama_memory_clear(self._memory, False)
        self._cells = CellCount()
        self._taken = 0

    def forward(self, spans: Sequence[Span], columns: Sequence[int] | None = None) -> np.ndarray:
        single = sum(len(s.tokens) for s in spans) <= self._batch_size
        if single and sum(len(s.wanted) for s in spans) <= self._outputs:
            rows = self._decode(spans)
            return rows if columns is None else rows[:, columns]
        # The logits buffer is overwritten by the next decode: copy what was asked for.
        parts: list[np.ndarray] = []
        for piece in pieces(spans, self._batch_size, self._outputs):
            rows = self._decode(piece)
            if len(rows):
                parts.append(rows.copy() if columns is None else rows[:, columns])
        return np.concatenate(parts) if parts else np.empty((0, 0), np.float32)

    def hidden(self, spans: Sequence[Span]) -> np.ndarray:
        # In this mode llama.cpp makes every token an output and still computes its logits, so a
        # batch may have no more tokens than the output buffer has rows.
        self._give_hidden(True)
        parts: list[np.ndarray] = []
        for piece in pieces(spans, self._outputs, self._outputs):
            self._compute(piece)
            rows = self._batch.wanted_rows()
            pointer = llama_cpp.llama_get_embeddings(self._context)
            states = np.ctypeslib.as_array(pointer, shape=(self._batch.size, self._width))
            parts.append(states[rows])
        return np.concatenate(parts) if parts else np.empty((0, self._width), np.float32)

    def _give_hidden(self, hidden: bool) -> None:
        if hidden != self._gives_hidden:  # a switch makes llama.cpp plan its buffers anew
            llama_cpp.llama_set_embeddings(self._context, hidden)
            self._gives_hidden = hidden

    def _decode(self, spans: Sequence[Span]) -> np.ndarray:
        self._give_hidden(False)
        self._compute(spans)
        count = self._batch.outputs
        if count == 0:
            return np.empty((0, self.vocabulary.size), np.float32)
        # ctypes makes a pointer type with a cost; one view over the whole buffer is enough.
        pointer = llama_cpp.llama_get_logits(self._context)
        return np.ctypeslib.as_array(pointer, shape=(count, self.vocabulary.size))

    def _compute(self, spans: Sequence[Span]) -> None:
        """Append spans that fit into one batch."""
        self._batch.clear()
        self._sweep(sum(len(span.tokens) for span in spans))
        for span in spans:
            self._batch.add(span, self._cells.length(span.paths[0]))
            self._cells.append(span.paths, len(span.tokens))
        status = llama_cpp.llama_decode(self._context, self._batch.native)
        if status == _ABORTED or self._stop.is_set:
            raise Interrupted
        if status != 0:
            reason = native_log.last_error() or f"status {status}"
            raise EngineError(
                Trouble.ENGINE, f"llama.cpp failed to compute a batch of {self.name}: {reason}."
            )

    def close(self) -> None:
        if self._context:
            llama_cpp.llama_free(self._context)
            self._context = None


def _abort_callback() -> Any:
    """libc's `strlen` as llama.cpp's abort callback.

    On a two-byte buffer it answers "is the first byte set?", and so a stop takes effect between
    two operations of the graph without a call into Python for each of them.
    """
    libc = ctypes.cdll.msvcrt if os.name == "nt" else ctypes.CDLL(None)
    return ctypes.cast(libc.strlen, llama_cpp.ggml_abort_callback)


class _Batch:
    """A reusable llama.cpp batch, written through numpy views of its C arrays."""

    def __init__(self, size: int) -> None:
        self._token = np.zeros(size, np.int32)
        self._position = np.zeros(size, np.int32)
        self._count = np.zeros(size, np.int32)
        self._wanted = np.zeros(size, np.int8)
        self._sets = (ctypes.POINTER(ctypes.c_int32) * (size + 1))()
        self._keep: list[np.ndarray] = []
        self.native: Any = llama_cpp.llama_batch()
        self.native.token = self._token.ctypes.data_as(ctypes.POINTER(ctypes.c_int32))
        self.native.pos = self._position.ctypes.data_as(ctypes.POINTER(ctypes.c_int32))
        self.native.n_seq_id = self._count.ctypes.data_as(ctypes.POINTER(ctypes.c_int32))
        self.native.logits = self._wanted.ctypes.data_as(ctypes.POINTER(ctypes.c_int8))
        self.native.seq_id = ctypes.cast(self._sets, ctypes.POINTER(ctypes.POINTER(ctypes.c_int32)))
        self.size = 0
        self.outputs = 0

    def clear(self) -> None:
        self.size = self.outputs = 0
        self._keep.clear()

    def add(self, span: Span, position: int) -> None:
        start, count = self.size, len(span.tokens)
        end = start + count
        self._token[start:end] = span.tokens
        self._position[start:end] = np.arange(position, position + count)
        self._count[start:end] = len(span.paths)
        self._wanted[start:end] = 0
        for index in span.wanted:
            self._wanted[start + (index if index >= 0 else count + index)] = 1
        self.outputs += len(span.wanted)
        paths = np.array(span.paths, np.int32)
        self._keep.append(paths)
        pointer = paths.ctypes.data_as(ctypes.POINTER(ctypes.c_int32))
        for index in range(start, end):
            self._sets[index] = pointer
        self.size = self.native.n_tokens = end

    def wanted_rows(self) -> np.ndarray:
        """Places of the wanted tokens in the batch, in order."""
        return np.flatnonzero(self._wanted[: self.size])
