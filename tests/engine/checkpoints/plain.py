"""Generators of any architecture that transformers has, with one token a byte."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

SIZES: dict[str, Any] = {
    "vocab_size": 260,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "pad_token_id": 256,
    "bos_token_id": 256,
    "eos_token_id": 257,
}
"""Keys that every configuration has; ids 256 and 257 are `<s>` and `</s>`."""


def build_plain(config: Any, folder: Path) -> Path:
    """Write a model with random weights and its tokenizer; returns the folder."""
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config)
    for weight in model.parameters():
        if weight.ndim == 2:
            torch.nn.init.normal_(weight, std=weight.shape[1] ** -0.5)
    model.save_pretrained(folder)
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(letters)}, merges=[]))
    splitting: Any = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.pre_tokenizer = splitting
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens(["<s>", "</s>"])
    PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token="<s>", eos_token="</s>"
    ).save_pretrained(folder)
    return folder
