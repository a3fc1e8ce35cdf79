"""The scaled-down checkpoints have the ids and files of the published ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from tests.engine.checkpoints import Family, whole_path_scores

PROBLEM = "Tom has 12 apples. He buys 7 more apples. How many apples does he have?"
STEPS = ("Tom starts with 12 apples.", "He buys 7 more, so he has 12 + 7 = 19 apples.")

# Texts and the ids that the published tokenizers give them (without what they put first).
KNOWN: dict[Family, dict[str, list[int]]] = {
    "math-shepherd": {"+ -": [648, 387], "12 ки": [12_902]},
    "rlhflow": {"+": [10], "-": [12], "\n\n": [271], "<|eot_id|>": [128_009]},
    "versaprm": {"a step. \n\n\n\n": [23_535], "-": [12]},
    "skywork": {"<|im_start|>": [151_644], "\n": [198], "a step.\n\n": [382]},
    "qwen2.5-math-prm": {"19.<extra_0>": [151_651], "<|im_end|>": [151_645], "\n\n": [271]},
}


@pytest.mark.parametrize("family", KNOWN)
def test_a_family_has_the_ids_and_one_score_a_step(
    family: Family, checkpoint: Callable[[Family], Path]
) -> None:
    folder = checkpoint(family)
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    for text, ids in KNOWN[family].items():
        assert tokenizer.encode(text)[-len(ids) :] == ids
    scores = whole_path_scores(family, folder, PROBLEM, STEPS)
    assert len(scores) == len(STEPS)
    assert scores[0] != scores[1]
