"""A checkpoint's tokenizer in the words of GGUF, from its tokenizer.json.

Byte-level BPE comes in a few splitting rules, each of which llama.cpp knows by a name.
SentencePiece's BPE is kept there as tokens with scores: the later a merge, the lower the score.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from engine.checkpoints.folder import read_json
from engine.errors import EngineError
from engine.protocol.events import Trouble

_WORDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
_REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_SPLITS = {
    _WORDS + r"\p{N}" + _REST: "qwen2",
    _WORDS + r"\p{N}{1,3}" + _REST: "llama-bpe",
}
_BYTE = re.compile(r"<0x[0-9A-F]{2}>")
NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
"""Types of tokens, as GGUF numbers them."""


class _Added(msgspec.Struct, frozen=True):
    id: int
    content: str
    special: bool = False


class _Bpe(msgspec.Struct, frozen=True):
    type: str
    vocab: dict[str, int] = {}
    merges: list[tuple[str, str] | str] = []
    byte_fallback: bool = False


class _File(msgspec.Struct, frozen=True):
    model: _Bpe
    added_tokens: list[_Added] = []
    normalizer: dict[str, Any] | None = None
    pre_tokenizer: dict[str, Any] | None = None
    post_processor: dict[str, Any] | None = None


class _About(msgspec.Struct, frozen=True):
    """tokenizer_config.json."""

    bos_token: str | dict[str, Any] | None = None
    eos_token: str | dict[str, Any] | None = None
    pad_token: str | dict[str, Any] | None = None
    unk_token: str | dict[str, Any] | None = None
    add_bos_token: bool | None = None
    add_eos_token: bool | None = None
    chat_template: str | list[dict[str, str]] | None = None


@dataclass(frozen=True, slots=True)
class TokenizerFacts:
    """What a GGUF file says of a tokenizer."""

    model: str
    """`gpt2` for byte-level BPE, `llama` for SentencePiece's."""
    split: str
    """llama.cpp's name of the splitting rule."""
    tokens: list[str]
    types: list[int]
    scores: list[float] | None
    merges: list[str] | None
    special: dict[str, int]
    """Ids by role: bos, eos, pad, unk."""
    add_bos: bool
    space_first: bool
    """A space is put before a text (SentencePiece)."""
    chat_template: str


def read_tokenizer(folder: Path, rows: int, control: set[str]) -> TokenizerFacts:
    """The tokenizer of a checkpoint.

    Args:
        rows: of the embedding, which may have more than there are tokens.
        control: texts that are control tokens whatever the file says of them.

    Raises:
        EngineError: the files are missing or of a kind that llama.cpp has no name for.
    """
    file = _read(folder)
    about = _about(folder)
    found = file.model.vocab | {token.content: token.id for token in file.added_tokens}
    tokens, types = _numbered(file, found, rows, control)
    sentencepiece = file.model.byte_fallback
    pairs = [_pair(merge) for merge in file.model.merges]
    special = {}
    for role in ("bos", "eos", "pad", "unk"):
        token = getattr(about, f"{role}_token")
        text = token.get("content") if isinstance(token, dict) else token
        if isinstance(text, str) and text in found:
            special[role] = found[text]
    begins = _begins_with(file.post_processor, found)
    return TokenizerFacts(
        model="llama" if sentencepiece else "gpt2",
        split="default" if sentencepiece else _split(file),
        tokens=tokens,
        types=types,
        scores=_scores(tokens, pairs) if sentencepiece else None,
        merges=None if sentencepiece else [f"{left} {right}" for left, right in pairs],
        special=special,
        add_bos=begins if about.add_bos_token is None else about.add_bos_token,
        space_first=sentencepiece and _space_first(file),
        chat_template=_chat_template(folder, about),
    )


def _read(folder: Path) -> _File:
    if not (folder / "tokenizer.json").exists():
        raise EngineError(
            Trouble.MODEL,
            f"There is no tokenizer.json in {folder}.",
            "If the model has none, transformers makes one: "
            "AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)",
        )
    file = read_json(folder, "tokenizer.json", _File)
    if file.model.type != "BPE":
        raise EngineError(
            Trouble.MODEL, f"A tokenizer of the kind '{file.model.type}' cannot be converted."
        )
    return file


def _about(folder: Path) -> _About:
    if (folder / "tokenizer_config.json").exists():
        return read_json(folder, "tokenizer_config.json", _About)
    return _About()


def _numbered(
    file: _File, found: dict[str, int], rows: int, control: set[str]
) -> tuple[list[str], list[int]]:
    """Text and type of each row of the embedding."""
    if found and not 0 <= min(found.values()) <= max(found.values()) < rows:
        raise EngineError(
            Trouble.MODEL,
            f"The tokenizer belongs to another model: it has tokens up to "
            f"{max(found.values()):,}, and the model knows {rows:,}.",
            "Take both from the same repository.",
        )
    tokens = [f"[PAD{row}]" for row in range(rows)]
    types = [UNUSED] * rows
    for text, id in found.items():
        tokens[id] = text
        types[id] = NORMAL
        if file.model.byte_fallback:
            types[id] = BYTE if _BYTE.fullmatch(text) else UNKNOWN if text == "<unk>" else NORMAL
    for added in file.added_tokens:
        if types[added.id] != UNKNOWN:
            special = added.special or added.content in control
            types[added.id] = CONTROL if special else USER
    return tokens, types


def _pair(merge: tuple[str, str] | str) -> tuple[str, str]:
    if isinstance(merge, tuple):
        return merge
    left, _, right = merge.partition(" ")
    return left, right


def _scores(tokens: list[str], pairs: list[tuple[str, str]]) -> list[float]:
    ranks: dict[str, int] = {}
    for rank, (left, right) in enumerate(pairs):
        ranks.setdefault(left + right, rank)
    return [-float(ranks.get(token, len(pairs))) for token in tokens]


def _split(file: _File) -> str:
    for part in _parts(file.pre_tokenizer, "pretokenizers"):
        pattern = part.get("pattern")
        if part.get("type") == "Split" and isinstance(pattern, dict):
            with suppress(KeyError, TypeError):
                return _SPLITS[pattern["Regex"]]
    raise EngineError(
        Trouble.MODEL,
        "The tokenizer splits text by a rule that is not known here.",
        "Sapwood knows those of Qwen2, Llama 3 and SentencePiece; look for a ready GGUF.",
    )


def _space_first(file: _File) -> bool:
    for part in _parts(file.normalizer, "normalizers"):
        if part.get("type") == "Prepend":
            return True
    return any(
        part.get("type") == "Metaspace" and part.get("prepend_scheme", "always") != "never"
        for part in _parts(file.pre_tokenizer, "pretokenizers")
    )


def _parts(part: dict[str, Any] | None, inside: str) -> Iterator[dict[str, Any]]:
    """A processing step and those inside it."""
    if not part:
        return
    yield part
    for inner in part.get(inside) or []:
        yield from _parts(inner, inside)


def _begins_with(post: dict[str, Any] | None, found: dict[str, int]) -> bool:
    """Whether a text's tokens begin with a special one."""
    for part in _parts(post, "processors"):
        first = next(iter(part.get("single") or []), {})
        name = first.get("SpecialToken", {}).get("id") if isinstance(first, dict) else None
        if name in found:
            return True
    return False


def _chat_template(folder: Path, about: _About) -> str:
    own = folder / "chat_template.jinja"
    if own.is_file():
        return own.read_text("utf-8", errors="replace")
    if isinstance(about.chat_template, str):
        return about.chat_template
    named = {t.get("name", ""): t.get("template", "") for t in about.chat_template or []}
    return named.get("default", "")
