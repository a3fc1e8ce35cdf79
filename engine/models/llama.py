"""Token model on llama.cpp: one unified KV cache used as a tree.

A path is a llama.cpp sequence id. With a unified cache a fork is a copy of metadata, and a batch
entry may belong to several sequences at once, so a shared prefix is computed and stored once.
Sliding-window models keep a full-size cache, since a fork needs every cell of its source.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import llama_cpp
import numpy as np

from engine.errors import EngineError
from engine.models import heap, llama_exact, native_log
from engine.models.base import Interrupted, Span
from engine.models.cells import CellCount
from engine.models.layer_states import LayerStates, add_rows
from engine.models.llama_batch import Batch
from engine.models.llama_weights import LlamaWeights
from engine.models.pieces import pieces
from engine.models.stop import StopSignal
from engine.models.threads import default_threads
from engine.protocol.events import Trouble

__all__ = ["MAX_PATHS", "CacheType", "LlamaModel", "LlamaWeights"]

CacheType = Literal["f16", "q8_0", "q4_0"]

_TYPES: dict[CacheType, int] = {
    "f16": llama_cpp.GGML_TYPE_F16,
    "q8_0": llama_cpp.GGML_TYPE_Q8_0,
    "q4_0": llama_cpp.GGML_TYPE_Q4_0,
}
MAX_PATHS = 254
"""llama.cpp can tell 256 sequences apart; one of them holds what was dropped, one is for passing
use."""
_LITTER = 2048
"""Dropped cells that are left where they are."""
_ABORTED = 2
_ALL: Any = -1
"""llama.cpp's word for all sequences."""


@dataclass(frozen=True, slots=True)
class SavedCells:
    """The end of a path in the host's memory."""

    tokens: list[int]
    content: np.ndarray

    @property
    def length(self) -> int:
        return len(self.tokens)

    @property
    def bytes(self) -> int:
        return self.content.nbytes


class LlamaModel:
    """A KV cache of `capacity` cells on some weights; implements `TokenModel`.

    It can be put to sleep, which frees its memory, and goes on where it was when it is awake
    again: with the same logits, since the order of the cells is kept. Forks and drops in between
    are remembered.

    Args:
        paths: sequence ids, at most `MAX_PATHS`; each reserves room for one row of logits.
        outputs: positions whose logits one decode may return; sizes llama.cpp's output buffer
            (vocabulary x outputs x 4 bytes).
        batch: tokens one decode may take.
        threads: compute threads; by default one is left to the rest of the machine.
        cache: how the values of the cache are stored.
        all_layers: `read` gives the states of all layers. Each pass then takes a little longer.
        precise: attention is summed in 32 bits, where it would be in 16 on a processor. The last
            bits of a path's logits then depend on what it is computed with. Needs a cache of f16.

    Raises:
        EngineError: there is no memory for it.
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
        cache: CacheType = "f16",
        all_layers: bool = False,
        precise: bool = False,
    ) -> None:
        self.name = weights.name
        self.vocabulary = weights.vocabulary
        self.trained_context = weights.trained_context
        self.max_paths = min(paths, MAX_PATHS)
        self._weights = weights
        self._exact = weights.layers == 0
        """Whether a path's logits do not depend on what it is computed with: on a CPU they can be
        kept so."""
        self._in_pairs = self._exact and llama_exact.read_in_pairs(weights.header)
        """Whether the logits of one row are never computed alone."""
        self._litter = self.max_paths
        self._scratch: Any = self.max_paths + 1
        self._outputs = max(outputs, self.max_paths + 2)  # llama.cpp takes no fewer
        self._batch_size = max(batch, self._outputs)
        self._params = self._context_params(capacity, threads, _TYPES[cache])
        if precise:
            self._params.flash_attn_type = llama_cpp.LLAMA_FLASH_ATTN_TYPE_DISABLED
        self.width = weights.width
        self.depth = weights.depth
        self.layers = weights.depth if all_layers else 1
        self._inside: LayerStates | None = None
        if all_layers:
            self._inside = LayerStates(weights.depth, weights.width, self._params.n_ubatch)
            self._params.cb_eval = self._inside.callback
        self._stop = stop
        self._cells = CellCount()
        self._taken = 0
        """Cells in use or dropped and not yet swept."""
        self._saved: np.ndarray | None = None
        """The cache's content while asleep, unless it is to be computed again."""
        self._later: list[Callable[[], object]] = []
        """Forks and drops of a saved cache, for when it is back."""
        self._batch = Batch(self._batch_size + 1)
        self._gives_hidden = False
        self._context: Any = None
        self._memory: Any = None
        self._open()
        self.capacity = int(llama_cpp.llama_n_ctx(self._context))

    def _context_params(self, capacity: int, threads: int | None, cache: int) -> Any:
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = capacity
        params.n_batch = params.n_ubatch = self._batch_size + 1
        if self._exact:
            params.n_ubatch = min(params.n_batch, llama_exact.ROWS)
            params.op_offload = False
        params.n_seq_max = self.max_paths + 2
        params.n_outputs_max = self._outputs
        params.kv_unified = True
        params.swa_full = True
        params.n_threads = params.n_threads_batch = threads or default_threads()
        params.type_k = params.type_v = cache
        return params

    def _open(self) -> None:
        self._context = llama_cpp.llama_init_from_model(self._weights.pointer, self._params)
        if not self._context:
            raise EngineError(
                Trouble.MEMORY,
                f"There is no memory for {self._params.n_ctx:,} cells of {self.name}: "
                f"{native_log.last_error() or 'llama.cpp gave no reason'}.",
                "Use a smaller --n or --context, a quantised --cache, or a smaller model.",
            )
        self._memory = llama_cpp.llama_get_memory(self._context)
        self._gives_hidden = False
        self.watch(self._stop)

    def watch(self, stop: StopSignal) -> None:
        """Give up computing when `stop` is set, from now on."""
        self._stop = stop
        if self._context:
            llama_cpp.llama_set_abort_callback(
                self._context, _abort_callback(), ctypes.cast(stop.flag, ctypes.c_void_p)
            )

    def touch(self) -> None:
        """Compute a batch with all outputs, so that what it will take is taken now."""
        count = min(self.capacity, max(self._outputs, self._params.n_ubatch))
        wanted = range(max(0, count - self._most_asked(count)), count)
        self.forward([Span((0,), [0] * count, wanted)])
        self.reset()

    @property
    def awake(self) -> bool:
        return bool(self._context)

    @property
    def saved_bytes(self) -> int:
        """Bytes in RAM that hold the cache's content while asleep."""
        return 0 if self._saved is None else self._saved.nbytes

    def sleep(self, *, weights: bool, save: bool) -> None:
        """Free the cache's memory, and that of the weights if `weights`.

        Args:
            save: keep a copy of the cells in use in RAM. Otherwise they are computed again.
        """
        if not self.awake:
            return
        self._free_dropped()
        self._saved = self._content() if save else None
        self._free_context()
        if weights:
            self._weights.unload()
        heap.give_back()

    def wake(self) -> None:
        """Be as before `sleep`.

        Raises:
            Interrupted: the stop signal was set meanwhile; the model sleeps on.
            EngineError: there is no memory for it.
        """
        if self.awake:
            return
        self._weights.load(lambda done: not self._stop.is_set)
        self._open()
        if self._saved is None:
            self._compute_again()
        else:
            self._restore(self._saved)
            self._saved = None
        for change in self._later:
            change()
        self._later.clear()

    def _content(self) -> np.ndarray:
        size = llama_cpp.llama_state_get_size(self._context)
        content = np.empty(size, np.uint8)
        llama_cpp.llama_state_get_data(self._context, _bytes_of(content), size)
        return content

    def _restore(self, content: np.ndarray) -> None:
        """llama.cpp puts the cells side by side, in the order they had."""
        read = llama_cpp.llama_state_set_data(self._context, _bytes_of(content), content.nbytes)
        if read != content.nbytes:
            self._free_context()
            raise EngineError(
                Trouble.ENGINE, f"llama.cpp cannot read back the cache of {self.name}."
            )

    def _compute_again(self) -> None:
        before, self._cells = self._cells, CellCount()
        self._taken = 0
        if not before.used:
            return
        try:
            self.forward([Span(paths, tokens, ()) for paths, tokens in before.runs()])
        except BaseException:
            self._cells = before
            self._free_context()
            raise

    def _free_context(self) -> None:
        if self._context:
            llama_cpp.llama_free(self._context)
            self._context = self._memory = None

    @property
    def used(self) -> int:
        return self._cells.used

    def length(self, path: int) -> int:
        return self._cells.length(path)

    def fork(self, source: int, target: int) -> None:
        self._cells.fork(source, target)
        self._change(lambda: self._copy(source, target))

    def drop(self, path: int) -> None:
        # llama.cpp would fill the freed cells at once, with tokens of paths that have others far
        # behind them. Sums over cells in another order differ in their last bits, so the same path
        # would come out differently in another run's company. Dropped cells stay taken instead.
        length = self._cells.length(path)
        freed = self._cells.drop(path)
        if freed:
            self._change(lambda: self._copy(path, self._litter, length - freed))
        self._change(lambda: self._clear(path))

    def shorten(self, path: int, length: int) -> None:
        before = self._cells.length(path)
        freed = self._cells.shorten(path, length)
        if freed:  # as in `drop`
            self._change(lambda: self._copy(path, self._litter, before - freed))
        self._change(lambda: self._clear(path, length))

    def _copy(self, source: int, target: int, start: int = -1) -> None:
        llama_cpp.llama_memory_seq_cp(self._memory, source, target, start, -1)

    def _change(self, change: Callable[[], object]) -> None:
        """Change the cache, at once or when its content is back."""
        if self.awake:
            change()
        elif self._saved is not None:
            self._later.append(change)

    def save(self, path: int, start: int) -> SavedCells:
        self.wake()
        self._copy(path, self._scratch, start)
        size = llama_cpp.llama_state_seq_get_size(self._context, self._scratch)
        content = np.empty(size, np.uint8)
        llama_cpp.llama_state_seq_get_data(self._context, _bytes_of(content), size, self._scratch)
        self._clear(self._scratch)
        return SavedCells(self._cells.tail(path, start), content)

    def restore(self, path: int, saved: SavedCells) -> None:
        self.wake()
        self._sweep(len(saved.tokens))
        self._read_back(saved.content, self._scratch)
        self._copy(self._scratch, path)
        self._clear(self._scratch)
        self._cells.append((path,), saved.tokens)

    def _read_back(self, content: np.ndarray, sequence: Any) -> None:
        size = content.nbytes
        read = llama_cpp.llama_state_seq_set_data(self._context, _bytes_of(content), size, sequence)
        if read != size:
            raise EngineError(
                Trouble.ENGINE, f"llama.cpp cannot read back a part of the cache of {self.name}."
            )

    def _clear(self, sequence: int, start: int = -1) -> None:
        llama_cpp.llama_memory_seq_rm(self._memory, sequence, start, -1)

    def _free_dropped(self) -> None:
        """Free all dropped cells."""
        self._clear(self._litter)
        if self._exact and self._taken != self._cells.used:
            self._close_gaps()
        self._taken = self._cells.used

    def _close_gaps(self) -> None:
        """Put the cells side by side in the order they have.

        llama.cpp would fill the gaps with tokens of paths that have others far behind them.
        """
        size = llama_cpp.llama_state_seq_get_size(self._context, _ALL)
        content = np.empty(size, np.uint8)
        llama_cpp.llama_state_seq_get_data(self._context, _bytes_of(content), size, _ALL)
        if (
            llama_cpp.llama_state_seq_set_data(self._context, _bytes_of(content), size, _ALL)
            != size
        ):
            raise EngineError(
                Trouble.ENGINE, f"llama.cpp cannot read back its cache of {self.name}."
            )

    def _sweep(self, needed: int, spare: int = 0) -> None:
        """Free dropped cells when they are in the way of `needed` new ones, with some to spare for
        a moment, or too many."""
        litter = self._taken - self._cells.used
        if (litter and self._taken + needed + spare > self.capacity) or litter > _LITTER:
            self._free_dropped()
        self._taken += needed

    def reset(self) -> None:
        if self.awake:
            llama_cpp.llama_memory_clear(self._memory, False)
        self._saved = None
        self._later.clear()
        self._cells = CellCount()
        self._taken = 0

    def forward(self, spans: Sequence[Span], columns: Sequence[int] | None = None) -> np.ndarray:
        count = sum(len(s.tokens) for s in spans)
        asked = sum(len(s.wanted) for s in spans)
        most = self._most_asked(count)
        if count <= self._batch_size and asked <= most:
            rows = self._decode(spans)
            return rows if columns is None else rows[:, columns]
        # The logits buffer is overwritten by the next decode: copy what was asked for.
        width = self.vocabulary.size if columns is None else len(columns)
        parts = [np.empty((0, width), np.float32)]
        for piece in pieces(spans, self._batch_size, most):
            rows = self._decode(piece)
            parts.append(rows.copy() if columns is None else rows[:, columns])
        return np.concatenate(parts)

    def _most_asked(self, count: int) -> int:
        """Outputs that a batch of `count` tokens may be asked for."""
        if not self._in_pairs:
            return self._outputs
        graphs = -(-min(count, self._batch_size) // llama_exact.ROWS)  # each may add a row
        return max(self._outputs - graphs, self._outputs // 2)

    def hidden(self, spans: Sequence[Span]) -> np.ndarray:
        # In this mode llama.cpp makes every token an output and still computes its logits, so a
        # batch may have no more tokens than the output buffer has rows.
        self._give_hidden(True)
        parts: list[np.ndarray] = []
        most = self._outputs - 1  # a row of company may be added
        for piece in pieces(spans, most, most):
            self._compute(piece)
            rows = self._batch.wanted_rows()
            pointer = llama_cpp.llama_get_embeddings(self._context)
            states = np.ctypeslib.as_array(pointer, shape=(self._batch.size, self.width))
            parts.append(states[rows])
        return np.concatenate(parts) if parts else np.empty((0, self.width), np.float32)

    def read(self, spans: Sequence[Span]) -> tuple[np.ndarray, np.ndarray]:
        self._give_hidden(True)
        logits: list[np.ndarray] = []
        sums = np.zeros((len(spans), self.layers, self.width), np.float32)
        whose = np.repeat(np.arange(len(spans)), [len(span.tokens) for span in spans])
        done = 0
        most = self._outputs - 1
        for piece in pieces(spans, most, most):
            count = sum(len(span.tokens) for span in piece)
            places = np.append(whose[done : done + count], -1)  # a row of company may be added
            done += count
            if self._inside is not None:
                self._inside.begin(places, sums)
            try:
                self._compute(piece)
            finally:
                if self._inside is not None:
                    self._inside.end()
            size = self._batch.size
            pointer = llama_cpp.llama_get_embeddings(self._context)
            states = np.ctypeslib.as_array(pointer, shape=(size, self.width))
            add_rows(sums[:, -1], places[:size], states)
            rows = llama_cpp.llama_get_logits(self._context)
            every = np.ctypeslib.as_array(rows, shape=(size, self.vocabulary.size))
            logits.append(every[self._batch.wanted_rows()])
        return np.concatenate(logits), sums

    def _give_hidden(self, hidden: bool) -> None:
        self.wake()
        if hidden != self._gives_hidden:  # a switch makes llama.cpp plan its buffers anew
            llama_cpp.llama_set_embeddings(self._context, hidden)
            self._gives_hidden = hidden

    def _decode(self, spans: Sequence[Span]) -> np.ndarray:
        self._give_hidden(False)
        asked = self._compute(spans)
        count = len(self._batch.wanted_rows())
        if count == 0:
            return np.empty((0, self.vocabulary.size), np.float32)
        # ctypes makes a pointer type with a cost; one view over the whole buffer is enough.
        pointer = llama_cpp.llama_get_logits(self._context)
        rows = np.ctypeslib.as_array(pointer, shape=(count, self.vocabulary.size))
        return rows if asked is None or len(asked) == count else rows[asked]

    def _compute(self, spans: Sequence[Span]) -> np.ndarray | None:
        """Append spans that fit into one batch.

        Returns:
            Which rows of the logits were asked for, where there may be others.
        """
        self._batch.clear()
        count = sum(len(span.tokens) for span in spans)
        # llama.cpp computes a single row in another way than several, with other last bits.
        single = self._exact and count % llama_exact.ROWS == 1
        self._sweep(count, spare=int(single))
        single = single and self._taken < self.capacity
        for span in spans:
            self._batch.add(span, self._cells.length(span.paths[0]))
            self._cells.append(span.paths, span.tokens)
        if single:
            self._batch.add(Span((self._scratch,), (spans[-1].tokens[-1],), ()), 0)
        asked = None
        if self._in_pairs and not self._gives_hidden:
            asked = self._batch.accompany(llama_exact.ROWS)
        status = llama_cpp.llama_decode(self._context, self._batch.native)
        self._stop.beat()
        if single:
            self._clear(self._scratch)
        if status == _ABORTED or self._stop.is_set:
            raise Interrupted
        if status != 0:
            reason = native_log.last_error() or f"status {status}"
            raise EngineError(
                Trouble.ENGINE, f"llama.cpp failed to compute a batch of {self.name}: {reason}."
            )
        return asked

    def close(self) -> None:
        self._free_context()
        self._saved = None


def _abort_callback() -> Any:
    """libc's `strlen` as llama.cpp's abort callback.

    On a two-byte buffer it answers "is the first byte set?", and so a stop takes effect between
    two operations of the graph without a call into Python for each of them.
    """
    libc = ctypes.cdll.msvcrt if os.name == "nt" else ctypes.CDLL(None)
    return ctypes.cast(libc.strlen, llama_cpp.ggml_abort_callback)


def _bytes_of(array: np.ndarray) -> Any:
    return array.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))
