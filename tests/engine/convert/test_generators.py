"""A converted generator writes in llama.cpp what its checkpoint writes in transformers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import llama_cpp
import pytest

from tests.engine.convert.converting import Bodies

if TYPE_CHECKING:
    from tests.engine.checkpoints import Family

PROMPT = "Tom has 12 apples. He buys 7 more"
COUNT = 24
TIE = 0.05
"""Logits this close may come in either order, since the two sum in other orders."""


@pytest.mark.parametrize(
    "family",
    [
        pytest.param("generator", id="qwen2, tied"),
        pytest.param("versaprm", id="llama, untied, stretched rotations"),
        pytest.param("math-shepherd", id="mistral, untied, sentencepiece"),
    ],
)
def test_greedy_text_is_that_of_the_checkpoint(
    family: Family, body: Bodies, checkpoint: Callable[[Family], Path]
) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = checkpoint(family)
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    torch.set_num_threads(1)
    reference = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    prompt = tokenizer.encode(PROMPT)
    converted = llama_cpp.Llama(str(body(family)), n_ctx=128, n_threads=1, verbose=False)
    assert converted.tokenize(PROMPT.encode()) == prompt

    written = list(islice(converted.generate(prompt, temp=0.0, repeat_penalty=1.0), COUNT))
    converted.close()
    with torch.inference_mode():
        logits = reference(torch.tensor([prompt + written[:-1]])).logits[0, len(prompt) - 1 :]
    behind = logits.max(dim=1).values - logits[range(COUNT), written]
    assert behind.max() < TIE
