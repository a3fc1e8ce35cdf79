"""A byte-level BPE tokenizer whose vocabulary is the world of the stories.

Every word of the phrasings and every number from 0 to `LARGEST` is one token:
copying an operand is then one step, and a result is right or wrong in one
place. Any other text falls apart into smaller pieces, down to bytes. It splits
like Llama 3 (`llama-bpe` in GGUF), so llama.cpp gives the same tokens.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from itertools import pairwise

from engine.seedling import phrases
from engine.seedling.problems import LARGEST, answer_step

PRE_TOKENIZER = "llama-bpe"
TURN, TURN_END, END = "<|im_start|>", "<|im_end|>", "<|endoftext|>"
MARKER, GOOD, BAD = "<|step|>", "<|good|>", "<|bad|>"
SPECIAL = (END, TURN, TURN_END, MARKER, GOOD, BAD)

# Llama 3's rule. The standard library has no \p{L} and \p{N}; these stand-ins
# agree with them on all that the stories are made of.
_LETTER, _DIGIT = r"[^\W\d_]", r"\d"
_PIECES = re.compile(
    r"'(?i:s|t|re|ve|m|ll|d)"
    rf"|(?:(?!{_LETTER}|{_DIGIT})[^\r\n])?{_LETTER}+"
    rf"|{_DIGIT}{{1,3}}"
    rf"| ?(?:(?!{_LETTER}|{_DIGIT})\S)+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_SPECIAL = re.compile("(" + "|".join(map(re.escape, SPECIAL)) + ")")


def byte_alphabet() -> list[str]:
    """GPT-2's printable stand-in for each of the 256 bytes."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    spare = iter(range(256, 512))
    return [chr(byte if byte in printable else next(spare)) for byte in range(256)]


_BYTES = byte_alphabet()
_UNBYTES = {symbol: byte for byte, symbol in enumerate(_BYTES)}


class Tokenizer:
    """Encodes and decodes; built from the phrasings, so always the same."""

    def __init__(self) -> None:
        self.merges = _learn_merges(_words())
        self.tokens = [*_BYTES, *dict.fromkeys(a + b for a, b in self.merges), *SPECIAL]
        self.ids = {token: index for index, token in enumerate(self.tokens)}
        self._ranks = {pair: rank for rank, pair in enumerate(self.merges)}
        self._cache: dict[str, list[int]] = {}
        self.numbers = [self.ids[str(number)] for number in range(LARGEST + 1)]
        self.checked = {*self.numbers, *(self.ids[sign] for sign in "+-*/")}
        """The tokens in which an equation can be wrong."""

    def __len__(self) -> int:
        return len(self.tokens)

    def encode(self, text: str) -> list[int]:
        """Token ids; special tokens are recognised by their names."""
        ids: list[int] = []
        for part in _SPECIAL.split(text):
            if part in SPECIAL:
                ids.append(self.ids[part])
            else:
                for piece in _PIECES.findall(part):
                    ids += self._encode_piece(piece)
        return ids

    def decode(self, ids: list[int]) -> str:
        """The text of `ids`, special tokens by name."""
        parts: list[bytes] = []
        for index in ids:
            token = self.tokens[index]
            special = token in SPECIAL
            parts.append(token.encode() if special else bytes(_UNBYTES[s] for s in token))
        return b"".join(parts).decode("utf-8", errors="replace")

    def _encode_piece(self, piece: str) -> list[int]:
        known = self._cache.get(piece)
        if known is None:
            symbols = [_BYTES[byte] for byte in piece.encode()]
            # As llama.cpp does for this pre-tokenizer: a whole piece that is in
            # the vocabulary needs no merging.
            if "".join(symbols) in self.ids:
                symbols = ["".join(symbols)]
            while len(symbols) > 1:
                pairs = list(pairwise(symbols))
                best = min(pairs, key=lambda pair: self._ranks.get(pair, len(self._ranks)))
                if best not in self._ranks:
                    break
                symbols = _merge(symbols, best)
            known = self._cache[piece] = [self.ids[symbol] for symbol in symbols]
        return known


@cache
def tokenizer() -> Tokenizer:
    """The one tokenizer of both models."""
    return Tokenizer()


def _words() -> list[list[str]]:
    """Every distinct piece the stories, the solutions and the chat are made of."""
    sentences = [answer_step(0), "user\n", "assistant\n", "system\n", "a.\n\n", "a?\n\n", "a\n\n"]
    sentences += [*phrases.DISTRACTORS]
    parts = [*phrases.OPENINGS, *phrases.EVENTS, *phrases.CLOSINGS]
    for part in parts:
        sentences += [*part.seen, *part.unseen, part.step, getattr(part, "question", "")]
    pools = [*phrases.NAMES.values(), phrases.THINGS, phrases.HOLDERS, ("He", "She", "he", "she")]
    sentences += [lead + word for pool in pools for word in pool for lead in ("", " ")]
    sentences += [str(number) for number in range(LARGEST + 1)]
    # Holes become digits, which the splitting keeps apart from all else.
    texts = [re.sub(r"\{[A-Za-z]+\}", "0", sentence) for sentence in sentences]
    pieces = sorted({piece for text in texts for piece in _PIECES.findall(text)})
    return [[_BYTES[byte] for byte in piece.encode()] for piece in pieces]


def _learn_merges(words: list[list[str]]) -> list[tuple[str, str]]:
    """Merge the commonest pair again and again until each word is one token."""
    merges: list[tuple[str, str]] = []
    while True:
        counts = Counter(pair for word in words for pair in pairwise(word))
        if not counts:
            return merges
        best = min(counts, key=lambda pair: (-counts[pair], pair))
        merges.append(best)
        words = [_merge(word, best) if len(word) > 1 else word for word in words]


def _merge(symbols: list[str], pair: tuple[str, str]) -> list[str]:
    merged: list[str] = []
    index = 0
    while index < len(symbols):
        if tuple(symbols[index : index + 2]) == pair:
            merged.append(pair[0] + pair[1])
            index += 2
        else:
            merged.append(symbols[index])
            index += 1
    return merged
