"""The tokenizers of published checkpoints, as the engine uses them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from engine.models.hf.vocabulary import HfVocabulary
from tests.engine.checkpoints import Family

TEXT = "Step 1: Tom has 12 + 7 = 19 apples.\n\n\u0434\u0430 ½ und 🙂  <|im_end|>"
CONTROL: dict[Family, tuple[str, int]] = {
    "math-shepherd": ("</s>", 2),
    "rlhflow": ("<|eot_id|>", 128_009),
    "qwen2.5-math-prm": ("<|im_end|>", 151_645),
}
Checkpoint = Callable[[Family], Path]


def both(folder: Path) -> tuple[HfVocabulary, Any]:
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    return HfVocabulary(tokenizer, len(tokenizer), set()), tokenizer


@pytest.mark.parametrize("family", CONTROL)
def test_tokens_are_those_of_the_checkpoint_and_their_bytes_are_the_text(
    family: Family, checkpoint: Checkpoint
) -> None:
    vocabulary, tokenizer = both(checkpoint(family))
    name, token = CONTROL[family]
    for text in (TEXT, TEXT + name):
        tokens = vocabulary.tokenize(text, special=True, bos=True)
        assert tokens == tokenizer.encode(text)
    assert tokens[-1] == token
    assert vocabulary.piece(token) == b""
    assert vocabulary.is_end(token) == (token != 2)  # which only the configuration can tell
    plain = vocabulary.tokenize(TEXT + name)
    assert token not in plain
    assert b"".join(map(vocabulary.piece, plain)).decode().lstrip() == TEXT + name


def test_only_tokenizers_that_begin_a_text_with_a_token_do_so(checkpoint: Checkpoint) -> None:
    firsts: dict[Family, list[int]] = {"math-shepherd": [1], "rlhflow": [128_000], "skywork": []}
    for family, first in firsts.items():
        vocabulary, _ = both(checkpoint(family))
        assert vocabulary.tokenize("Tom", bos=True) == first + vocabulary.tokenize("Tom")


def test_half_a_surrogate_pair_is_replaced(checkpoint: Checkpoint) -> None:
    vocabulary, _ = both(checkpoint("rlhflow"))
    assert vocabulary.tokenize("a\ud83d") == vocabulary.tokenize("a?")
