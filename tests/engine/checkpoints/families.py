"""One function that writes a checkpoint of a published model's family into a folder."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, LlamaConfig, MistralConfig, Qwen2Config

from tests.engine.checkpoints import vocabularies

Family = Literal[
    "math-shepherd",
    "rlhflow",
    "versaprm",
    "skywork",
    "qwen2.5-math-prm",
    "trl",
    "reasonflux-1.5b",
    "generator",
]
FAMILIES: tuple[Family, ...] = get_args(Family)

Tensors = dict[str, torch.Tensor]

CHATML = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
LLAMA3_CHAT = (
    "{{ bos_token }}{% for message in messages %}"
    "{{ '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' }}"
    "{{ message['content'] | trim + '<|eot_id|>' }}{% endfor %}"
    "{% if add_generation_prompt %}"
    "{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}"
)


@dataclass(frozen=True, slots=True)
class Scale:
    """What is scaled down. The head width is `width` / 4; two query heads share a key head."""

    width: int = 64
    layers: int = 2


def build(family: Family, folder: Path, *, scale: Scale | None = None, seed: int = 0) -> Path:
    """Write the checkpoint of a family, in bfloat16 as they are published; returns the folder."""
    scale = scale or Scale()
    folder.mkdir(parents=True, exist_ok=True)
    draw = _Draw(seed)
    config = _config(family, scale)
    tensors = _body(family, config, draw)
    match family:
        case "math-shepherd":
            vocabularies.mistral(folder)
        case "rlhflow" | "versaprm":
            vocabularies.llama3(folder, LLAMA3_CHAT)
        case "skywork":
            vocabularies.qwen(folder, CHATML, bos="<|im_start|>")
            tensors |= draw.linear("v_head.summary", scale.width, 1)
            config["architectures"] = ["Qwen2ForPrmModel"]
            _remote(config, "modeling_qwen2_rm.Qwen2ForPrmModel")
        case "qwen2.5-math-prm":
            vocabularies.qwen(folder, CHATML, separator=True)
            tensors |= draw.linear("score.0", scale.width, scale.width)
            tensors |= draw.linear("score.2", scale.width, 2)
            config["architectures"] = ["Qwen2ForProcessRewardModel"]
            _remote(config, "modeling_qwen2_rm.Qwen2ForProcessRewardModel")
        case "trl":
            vocabularies.qwen(folder, CHATML)
            tensors |= draw.linear("score", scale.width, 2)
            config["architectures"] = ["Qwen2ForTokenClassification"]
        case "reasonflux-1.5b":
            vocabularies.qwen(folder, CHATML)
            head = {k.rpartition(".")[2]: v for k, v in draw.linear("", scale.width, 1).items()}
            torch.save(head, folder / "reward_head.pt")
        case "generator":
            vocabularies.qwen(folder, CHATML)
    if family == "skywork":  # published as a pickle
        torch.save(tensors, folder / "pytorch_model.bin")
    else:
        save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    return folder


class _Draw:
    """Random weights large enough for scores to differ."""

    def __init__(self, seed: int) -> None:
        self._source = torch.Generator().manual_seed(seed)

    def normal(self, *shape: int, spread: float) -> torch.Tensor:
        return (torch.randn(*shape, generator=self._source) * spread).to(torch.bfloat16)

    def linear(self, name: str, inputs: int, outputs: int) -> Tensors:
        return {
            f"{name}.weight": self.normal(outputs, inputs, spread=2 * inputs**-0.5),
            f"{name}.bias": self.normal(outputs, spread=0.1),
        }


def _config(family: Family, scale: Scale) -> dict[str, Any]:
    sizes = {
        "hidden_size": scale.width,
        "intermediate_size": 2 * scale.width,
        "num_hidden_layers": scale.layers,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "hidden_act": "silu",
        "torch_dtype": "bfloat16",
    }
    if family == "math-shepherd":
        return sizes | {
            "architectures": ["MistralForCausalLM"],
            "model_type": "mistral",
            "vocab_size": 32_000,
            "max_position_embeddings": 32_768,
            "sliding_window": 4096,
            "rope_theta": 10_000.0,
            "rms_norm_eps": 1e-5,
            "tie_word_embeddings": False,
            "bos_token_id": 1,
            "eos_token_id": 2,
        }
    if family in ("rlhflow", "versaprm"):
        return sizes | {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "vocab_size": 128_256,
            "max_position_embeddings": 131_072,
            "rope_theta": 500_000.0,
            "rope_scaling": {
                "rope_type": "llama3",
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 8192,
            },
            "rms_norm_eps": 1e-5,
            "tie_word_embeddings": False,
            "bos_token_id": 128_000,
            "eos_token_id": 128_009,
        }
    return sizes | {
        "architectures": ["Qwen2ForCausalLM"],
        "model_type": "qwen2",
        "vocab_size": 151_936,
        "max_position_embeddings": 4096,
        "sliding_window": 4096,
        "use_sliding_window": False,
        "max_window_layers": 21,
        "rope_theta": 10_000.0,
        "rms_norm_eps": 1e-6,
        "tie_word_embeddings": family != "qwen2.5-math-prm",
        "bos_token_id": 151_643,
        "eos_token_id": 151_645,
    }


def _remote(config: dict[str, Any], model: str) -> None:
    """What makes a loader ask for code out of the repository, which these folders do not have."""
    config["auto_map"] = {"AutoModel": model}


def _body(family: Family, config: dict[str, Any], draw: _Draw) -> Tensors:
    kinds: dict[str, Any] = {"qwen2": Qwen2Config, "llama": LlamaConfig, "mistral": MistralConfig}
    with torch.device("meta"):
        shapes = AutoModelForCausalLM.from_config(
            kinds[config["model_type"]].from_dict(config)
        ).state_dict()
    tensors: Tensors = {}
    for name, tensor in shapes.items():
        if name == "lm_head.weight" and (
            config["tie_word_embeddings"] or family == "qwen2.5-math-prm"
        ):
            continue
        if tensor.ndim == 1:
            centre = 1.0 if name.endswith("norm.weight") else 0.0
            tensors[name] = draw.normal(*tensor.shape, spread=0.1) + centre
        else:
            tensors[name] = draw.normal(*tensor.shape, spread=tensor.shape[1] ** -0.5)
    return tensors
