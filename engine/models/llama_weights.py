"""The weights and the vocabulary of a GGUF file, loaded by llama.cpp."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import llama_cpp

from engine.errors import EngineError
from engine.models import devices, heap, llama_exact, native_log
from engine.models.base import Interrupted
from engine.models.chat import ChatTemplate
from engine.models.gguf import Header, read_header
from engine.models.llama_vocabulary import LlamaVocabulary
from engine.protocol.events import Trouble

_WANTS_MEMORY = re.compile(r"alloc|out of memory", re.IGNORECASE)

Progress = Callable[[float], bool]


class LlamaWeights:
    """A model file in memory; contexts are opened on it.

    The vocabulary is loaded apart from the weights and stays while they are away: tokens are made
    of text at any time, and reading a vocabulary takes longer than mapping a small model.

    Args:
        header: the file's header, if it is read already.
        progress: told of the part that is loaded, from 0 to 1; stops loading by answering False.
        layers: how many are put on a GPU; None puts all there if llama.cpp can use one.
        device: llama.cpp's name of that GPU; None leaves the choice to it.

    Raises:
        EngineError: the file is missing, damaged, or of an architecture that cannot be forked, or
            there is no memory for it.
        Interrupted: `progress` stopped it.
    """

    def __init__(
        self,
        path: Path,
        header: Header | None = None,
        progress: Progress = lambda done: True,
        layers: int | None = None,
        device: str | None = None,
    ) -> None:
        self.path = path
        self.header = header or read_header(path)
        native_log.install()
        self.layers = layers if llama_cpp.llama_supports_gpu_offload() else 0
        self._device = device
        self.pointer: Any = None
        self._words: Any = _load(path, _vocabulary_alone())
        try:
            self.vocabulary = LlamaVocabulary(llama_cpp.llama_model_get_vocab(self._words))
            self.load(progress)
            self._refuse_what_cannot_fork()
        except BaseException:
            self.close()
            raise
        self.name = self.header.text("general.name") or path.stem
        self.trained_context = int(llama_cpp.llama_model_n_ctx_train(self.pointer))
        self.width = int(llama_cpp.llama_model_n_embd(self.pointer))
        """Values of a hidden state."""
        self.depth = int(llama_cpp.llama_model_n_layer(self.pointer))
        """Layers."""

    @cached_property
    def template(self) -> ChatTemplate:
        """Of the file.

        Raises:
            EngineError: it cannot be read.
        """
        return ChatTemplate(
            self.header.text("tokenizer.chat_template"),
            bos=self.vocabulary.bos.decode(errors="replace"),
            eos=self.vocabulary.eos.decode(errors="replace"),
        )

    def load(self, progress: Progress = lambda done: True) -> None:
        """Have the weights in memory, if they are not."""
        if self.pointer:
            return
        params: Any = llama_cpp.llama_model_default_params()
        params.n_gpu_layers = -1 if self.layers is None else self.layers
        if self.layers == 0:
            llama_exact.one_way(params)
        if self._device is not None:  # a list that ends with an empty entry
            chosen = (ctypes.c_void_p * 2)(devices.handle(self._device), None)
            params.devices = ctypes.cast(chosen, ctypes.c_void_p)
        overrides = self._without_vocabulary()
        params.kv_overrides = overrides
        stopped = False

        @llama_cpp.llama_progress_callback
        def tell(done: float, _data: object) -> bool:
            nonlocal stopped
            stopped = not progress(done)
            return not stopped

        params.progress_callback = tell
        try:
            self.pointer = _load(self.path, params)
        except EngineError:
            if stopped:
                raise Interrupted from None
            raise
        if stopped:
            self.unload()
            raise Interrupted

    @property
    def loaded(self) -> bool:
        return self.pointer is not None

    def unload(self) -> None:
        """Free the weights; their pages stay in the system's cache of files."""
        if self.pointer:
            llama_cpp.llama_model_free(self.pointer)
            self.pointer = None
            heap.give_back()

    def close(self) -> None:
        self.unload()
        if self._words:
            llama_cpp.llama_model_free(self._words)
            self._words = None

    def _without_vocabulary(self) -> Any:
        """Metadata to be read instead of the file's: no vocabulary, but its size."""
        kind = self.header.text("general.architecture")
        overrides = (llama_cpp.llama_model_kv_override * 3)()  # the last one, empty, ends the list
        overrides[0].key = b"tokenizer.ggml.model"
        overrides[0].tag = llama_cpp.LLAMA_KV_OVERRIDE_TYPE_STR
        overrides[0].value.val_str = b"none"
        overrides[1].key = f"{kind}.vocab_size".encode()
        overrides[1].tag = llama_cpp.LLAMA_KV_OVERRIDE_TYPE_INT
        overrides[1].value.val_i64 = self.vocabulary.size
        return overrides

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


def _vocabulary_alone() -> Any:
    params = llama_cpp.llama_model_default_params()
    params.vocab_only = True
    return params


def _load(path: Path, params: Any) -> Any:
    pointer = llama_cpp.llama_model_load_from_file(os.fsencode(path), params)
    if pointer:
        return pointer
    reason = native_log.last_error() or "no reason given"
    if _WANTS_MEMORY.search(reason):
        raise EngineError(
            Trouble.MEMORY,
            f"There is no memory for the weights of {path.name}: {reason}.",
            "Free some, or use a smaller model or a smaller quantisation of it.",
        )
    raise EngineError(
        Trouble.MODEL,
        f"llama.cpp cannot load {path.name}: {reason}.",
        "The file may be damaged, or be newer than the installed llama-cpp-python.",
    )
