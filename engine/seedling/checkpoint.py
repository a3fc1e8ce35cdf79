"""The pair as checkpoints of the model hub, from its GGUF files, to be run by transformers."""

from __future__ import annotations

import json
from pathlib import Path

import gguf
import numpy as np

from engine.checkpoints.safetensors import write_safetensors
from engine.seedling.export import CHAT_TEMPLATE
from engine.seedling.tokenizer import END, SPECIAL, TURN_END, tokenizer

# Llama 3's rule for splitting text, which the vocabulary was learnt with.
_PIECES = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def write_checkpoint(model: Path, folder: Path) -> Path:
    """Write one of the pair's GGUF files as a folder with config, weights and tokenizer."""
    reader = gguf.GGUFReader(model)

    def number(key: str) -> float:
        return reader.fields[f"llama.{key}"].contents()

    heads = int(number("attention.head_count"))
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": int(number("embedding_length")),
        "intermediate_size": int(number("feed_forward_length")),
        "num_hidden_layers": int(number("block_count")),
        "num_attention_heads": heads,
        "num_key_value_heads": heads,
        "max_position_embeddings": int(number("context_length")),
        "rms_norm_eps": number("attention.layer_norm_rms_epsilon"),
        "rope_theta": number("rope.freq_base"),
        "vocab_size": len(tokenizer()),
        "tie_word_embeddings": True,
        "bos_token_id": None,
        "eos_token_id": tokenizer().ids[TURN_END],
        "torch_dtype": "float32",
    }
    tensors = {
        _name(tensor.name): _values(tensor.data.astype(np.float32), tensor.name, heads)
        for tensor in reader.tensors
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    write_safetensors(folder / "model.safetensors", tensors, {"format": "pt"})
    (folder / "tokenizer.json").write_text(json.dumps(_tokenizer()))
    about = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": TURN_END,
        "pad_token": END,
        "chat_template": CHAT_TEMPLATE,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(about))
    return folder


def _name(name: str) -> str:
    *layer, kind, ending = name.split(".")
    place = f"model.layers.{layer[1]}." if layer else ""
    return f"{place}{_NAMES[kind]}.{ending}"


def _values(values: np.ndarray, name: str, heads: int) -> np.ndarray:
    if ".attn_q." in name or ".attn_k." in name:
        # llama.cpp turns neighbours by an angle, transformers the halves of a head.
        rows, width = values.shape
        pairs = values.reshape(heads, rows // heads // 2, 2, width)
        return pairs.swapaxes(1, 2).reshape(rows, width)
    return values


def _tokenizer() -> dict[str, object]:
    known = tokenizer()
    byte_level = {
        "type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False
    }  # fmt: skip
    splitting = {
        "type": "Split", "pattern": {"Regex": _PIECES}, "behavior": "Isolated", "invert": False
    }  # fmt: skip
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": known.ids[text],
                "content": text,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
            for text in SPECIAL
        ],
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [splitting, byte_level]},
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": True,
            "vocab": {text: i for text, i in known.ids.items() if text not in SPECIAL},
            "merges": [list(pair) for pair in known.merges],
        },
    }
