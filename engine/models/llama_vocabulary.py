"""The vocabulary of a GGUF file through llama.cpp's tokenizer."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import llama_cpp

from engine.errors import EngineError
from engine.models import native_log
from engine.protocol.events import Trouble


class LlamaVocabulary:
    """Implements `Vocabulary`."""

    def __init__(self, pointer: Any) -> None:
        self._pointer = pointer
        self.size = int(llama_cpp.llama_vocab_n_tokens(pointer))
        self._pieces: dict[int, bytes] = {}

    def tokenize(self, text: str, *, special: bool = False, bos: bool = False) -> list[int]:
        data = text.encode(errors="replace")  # half a surrogate pair has no bytes
        room = len(data) + 8
        tokens = (llama_cpp.llama_token * room)()
        count = llama_cpp.llama_tokenize(self._pointer, data, len(data), tokens, room, bos, special)
        if count < 0:
            tokens = (llama_cpp.llama_token * -count)()
            count = llama_cpp.llama_tokenize(
                self._pointer, data, len(data), tokens, -count, bos, special
            )
        if bos and llama_cpp.llama_vocab_get_add_eos(self._pointer):
            count -= 1  # llama.cpp knows no way to ask for the first of the two alone
        return tokens[:count]

    def piece(self, token: int) -> bytes:
        known = self._pieces.get(token)
        if known is None:
            known = self._pieces[token] = self._text(token, special=False)
        return known

    def is_end(self, token: int) -> bool:
        return llama_cpp.llama_vocab_is_eog(self._pointer, token)

    @cached_property
    def bos(self) -> bytes:
        """Text of the beginning-of-sequence token; empty if the model has none."""
        token: Any = llama_cpp.llama_vocab_bos(self._pointer)
        return self._text(token, special=True) if token >= 0 else b""

    @cached_property
    def eos(self) -> bytes:
        token: Any = llama_cpp.llama_vocab_eos(self._pointer)
        return self._text(token, special=True) if token >= 0 else b""

    def _text(self, token: int, *, special: bool) -> bytes:
        size = 64
        while True:
            buffer = ctypes.create_string_buffer(size)
            count = llama_cpp.llama_token_to_piece(self._pointer, token, buffer, size, 0, special)
            if count >= 0:
                return buffer.raw[:count]
            size = -count


@contextmanager
def vocabulary_of(path: Path) -> Iterator[LlamaVocabulary]:
    """The vocabulary of a model file, without its weights.

    Raises:
        EngineError: llama.cpp cannot read it.
    """
    native_log.install()
    params = llama_cpp.llama_model_default_params()
    params.vocab_only = True
    model: Any = llama_cpp.llama_model_load_from_file(os.fsencode(path), params)
    if not model:
        reason = native_log.last_error() or "no reason given"
        raise EngineError(Trouble.MODEL, f"llama.cpp cannot read {path.name}: {reason}.")
    try:
        yield LlamaVocabulary(llama_cpp.llama_model_get_vocab(model))
    finally:
        llama_cpp.llama_model_free(model)
