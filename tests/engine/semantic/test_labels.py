# ruff: noqa: RUF001 - signs that look like others are what this is about
"""Which steps mean the same."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers

from engine.errors import EngineError
from engine.semantic.labels import by_entailment, by_equations, shares
from engine.semantic.nli import load_entailment


def test_equations_decide() -> None:
    steps = [
        "Now there are 14+5=19 plums.",
        "So 5 + 14 = 19 in all.",
        "Now there are 14+5=18 plums.",
        "That leaves 14-5=9.",
        "That leaves 5-14=9.",
        "The answer is \\boxed{19}.",
        "It is \\boxed{19}",
        "3.50 × 2 = 7",
        "2*3.5=7.0",
        "Let us see.",
        "let us  see",
    ]
    assert by_equations("", steps) == [0, 0, 1, 2, 3, 4, 4, 5, 5, 6, 6]


def test_entailment_must_hold_both_ways_and_sees_the_context() -> None:
    asked: list[tuple[str, str, str]] = []

    def entails(context: str, first: str, second: str) -> bool:
        asked.append((context, first, second))
        return first[0] == second[0] and len(first) >= len(second)

    found = by_entailment(entails)("before", ["ab", "cd", "ax", "abc", "cd"])
    assert found == [0, 1, 0, 2, 1]
    assert ("before", "ab", "abc") in asked  # the longer does not follow from the shorter
    assert {context for context, _, _ in asked} == {"before"}


def test_a_step_joins_one_cluster_and_stays_there() -> None:
    clusters = by_entailment(lambda context, first, second: True)
    assert clusters("", ["a", "b", "c"]) == [0, 0, 0]


def test_shares() -> None:
    assert shares([0, 1, 2], [0, 0, 1, 3]) == [0.5, 0.25, 0.0]


@pytest.fixture(scope="module")
def nli(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """DeBERTa-v2 with small random weights."""
    folder = tmp_path_factory.mktemp("nli")
    torch.manual_seed(1)
    words = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", *"abcdefghij"]
    vocabulary = {word: index for index, word in enumerate(words)}
    plain = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    plain.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=plain,
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        unk_token="[UNK]",
        model_max_length=64,
    )
    tokenizer.save_pretrained(folder)
    config = transformers.DebertaV2Config(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
        num_labels=3,
        id2label={0: "CONTRADICTION", 1: "NEUTRAL", 2: "ENTAILMENT"},
        label2id={"CONTRADICTION": 0, "NEUTRAL": 1, "ENTAILMENT": 2},
        initializer_range=1.0,
    )
    transformers.DebertaV2ForSequenceClassification(config).save_pretrained(folder)
    return folder


def test_a_classifier_tells_entailment(nli: Path) -> None:
    entails = load_entailment(nli)
    words = "abcdefghij"
    found = [entails(c, a, b) for c in words for a in words for b in words[:3]]
    assert len(set(found)) == 2, "a random classifier says both"
    assert found == [entails(c, a, b) for c in words for a in words for b in words[:3]]
    by_context = [[entails(c, a, b) for a in words for b in words[:3]] for c in words]
    assert any(row != by_context[0] for row in by_context), "the context makes a difference"
    steps = ["a b", "c d", "a b", "e"]
    clusters = by_entailment(entails)("f g", steps)
    assert clusters[0] == clusters[2] == 0


def test_what_is_no_such_classifier_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="no sequence classifier"):
        load_entailment(tmp_path)
