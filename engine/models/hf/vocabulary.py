"""The vocabulary of a checkpoint through its own tokenizer files."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_ENDS = (
    "<|endoftext|>", "<|im_end|>", "<|end_of_text|>", "<|eot_id|>", "<|eom_id|>", "<end_of_turn>",
    "<|end|>",
)  # fmt: skip
"""Tokens that end a turn or a text in every model that has them, whatever its files say."""


class HfVocabulary:
    """Implements `Vocabulary`.

    Args:
        tokenizer: a transformers tokenizer that stands on the `tokenizers` library.
        size: rows of the model's embedding; may be more than the tokenizer has tokens.
        ends: ids that end a generation, by the checkpoint's own word.
    """

    def __init__(self, tokenizer: Any, size: int, ends: set[int]) -> None:
        self.size = size
        self._backend: Any = tokenizer.backend_tokenizer
        self._pieces: dict[int, bytes] = {}
        added = self._backend.get_added_tokens_decoder()
        self._special = {token for token, about in added.items() if about.special}
        self._written = {t: about.content for t, about in added.items() if not about.special}
        self._byte_level = "ByteLevel" in str(self._backend.decoder)
        known = (self._backend.token_to_id(name) for name in _ENDS)
        self._ends = ends | {token for token in known if token is not None}
        self.bos: str = tokenizer.bos_token or ""
        self.eos: str = tokenizer.eos_token or ""
        first = self._backend.encode("a").ids[:1]
        self._first = first if first == [tokenizer.bos_token_id] else []

    def tokenize(self, text: str, *, special: bool = False, bos: bool = False) -> list[int]:
        text = text.encode(errors="replace").decode()  # half a surrogate pair is no text
        self._backend.encode_special_tokens = not special
        ids: list[int] = self._backend.encode(text, add_special_tokens=False).ids
        return self._first + ids if bos else ids

    def piece(self, token: int) -> bytes:
        known = self._pieces.get(token)
        if known is None:
            known = self._pieces[token] = self._piece(token)
        return known

    def is_end(self, token: int) -> bool:
        return token in self._ends

    def _piece(self, token: int) -> bytes:
        if token in self._special:
            return b""
        if token in self._written:
            return self._written[token].encode()
        name: str | None = self._backend.id_to_token(token)
        if name is None:  # a row of the embedding that no token has
            return b""
        if self._byte_level:
            return b"".join(_bytes_by_letter().get(letter, letter.encode()) for letter in name)
        byte = _BYTE.fullmatch(name)
        return bytes.fromhex(byte[1]) if byte else name.replace("▁", " ").encode()


@cache
def _bytes_by_letter() -> dict[str, bytes]:
    """Byte-level tokenizers write bytes that do not print as letters from U+0100 on."""
    printable = {*range(33, 127), *range(161, 173), *range(174, 256)}
    spare = iter(range(256, 512))
    return {chr(b if b in printable else next(spare)): bytes([b]) for b in range(256)}
