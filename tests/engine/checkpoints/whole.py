"""Scores of a whole solution as the model cards compute them, in transformers, in float32."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import nn
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForTokenClassification,
    AutoTokenizer,
)

from tests.engine.checkpoints.families import Family

_BODIES = ("model.safetensors", "pytorch_model.bin")
_SYSTEM = "Please reason step by step, and put your final answer within \\boxed{}."


def whole_path_scores(
    family: Family, folder: Path, problem: str, steps: Sequence[str]
) -> list[float]:
    """One score a step, from a single pass over everything.

    ReasonFlux 1.5B scores a text as a whole and so needs a pass for each step.
    """
    tokenizer = _tokenizer(folder)
    with torch.inference_mode():
        match family:
            case "math-shepherd":
                return _math_shepherd(folder, tokenizer, problem, steps)
            case "rlhflow":
                return _rlhflow(folder, tokenizer, problem, steps)
            case "versaprm":
                return _versaprm(folder, tokenizer, problem, steps)
            case "skywork":
                return _skywork(folder, tokenizer, problem, steps)
            case "qwen2.5-math-prm":
                return _qwen_prm(folder, tokenizer, problem, steps)
            case "trl":
                return _trl(folder, tokenizer, problem, steps)
            case "reasonflux-1.5b":
                return _reasonflux(folder, tokenizer, problem, steps)
            case "generator":
                raise ValueError("a generator scores nothing")


def _math_shepherd(folder: Path, tokenizer: Any, problem: str, steps: Sequence[str]) -> list[float]:
    candidates = tokenizer.encode("+ -")[1:]
    tag = tokenizer.encode("ки")[-1]
    written = "\n".join(f"Step {i}: {step} ки" for i, step in enumerate(steps, 1))
    ids = torch.tensor([tokenizer.encode(f"{problem} {written}")])
    logits = _causal(folder)(ids).logits[:, :, candidates]
    return logits.softmax(dim=-1)[:, :, 0][ids == tag].tolist()


def _rlhflow(folder: Path, tokenizer: Any, problem: str, steps: Sequence[str]) -> list[float]:
    model = _causal(folder)
    good, bad = tokenizer.encode("+")[-1], tokenizer.encode("-")[-1]
    conversation: list[dict[str, str]] = []
    scores: list[float] = []
    for step in steps:
        text = step if conversation else f"{problem} {step}"
        conversation.append({"role": "user", "content": text})
        conversation.append({"role": "assistant", "content": "+"})
        text = tokenizer.apply_chat_template(conversation, tokenize=False)
        ids = torch.tensor([tokenizer.encode(text, add_special_tokens=False)])
        scores.append(model(ids).logits[0, -3, [good, bad]].softmax(dim=-1)[0].item())
    return scores


def _versaprm(folder: Path, tokenizer: Any, problem: str, steps: Sequence[str]) -> list[float]:
    marker = " \n\n\n\n"
    text = f"{problem} \n\n" + "".join(step + marker for step in steps)
    ids = torch.tensor([tokenizer.encode(text)])
    tag = tokenizer.encode(marker, add_special_tokens=False)[0]
    logits = _causal(folder)(ids).logits[:, :, [12, 10]]
    return logits.softmax(dim=-1)[:, :, 1][ids == tag].tolist()


def _skywork(folder: Path, tokenizer: Any, problem: str, steps: Sequence[str]) -> list[float]:
    weights = _weights(folder / "pytorch_model.bin")
    ids = tokenizer.encode(f"{tokenizer.bos_token}{problem}\n")
    places: list[int] = []
    for line in "\n".join(steps).split("\n"):
        ids += [*tokenizer.encode(line), *tokenizer.encode("\n")]
        places.append(len(ids) - 1)
    hidden = _body(folder)(torch.tensor([ids])).last_hidden_state[0, places]
    return _linear(weights, "v_head.summary")(hidden).sigmoid()[:, 0].tolist()


def _qwen_prm(folder: Path, tokenizer: Any, problem: str, steps: Sequence[str]) -> list[float]:
    weights = _weights(folder / "model.safetensors")
    messages = [
        {"role": "system", "content": _SYSTEM},
        {"role": "user", "content": problem},
        {"role": "assistant", "content": "<extra_0>".join(steps) + "<extra_0>"},
    ]
    text = tokenizer.apply_chat_template(messages, tokenize=False)
    ids = torch.tensor([tokenizer.encode(text)])
    head = nn.Sequential(_linear(weights, "score.0"), nn.ReLU(), _linear(weights, "score.2"))
    logits = head(_body(folder)(ids).last_hidden_state)
    separator = tokenizer.encode("<extra_0>")[0]
    return logits.softmax(dim=-1)[:, :, 1][ids == separator].tolist()


def _trl(folder: Path, tokenizer: Any, problem: str, steps: Sequence[str]) -> list[float]:
    model = _classifier(folder)
    ids: list[int] = tokenizer.encode(problem, add_special_tokens=False)
    places: list[int] = []
    for step in steps:
        ids += tokenizer.encode(step, add_special_tokens=False)
        ids += tokenizer.encode("\n\n", add_special_tokens=False)
        places.append(len(ids) - 1)
    return model(torch.tensor([ids])).logits[0, places].softmax(dim=-1)[:, 1].tolist()


def _reasonflux(folder: Path, tokenizer: Any, problem: str, steps: Sequence[str]) -> list[float]:
    weights = _weights(folder / "reward_head.pt")
    scores: list[float] = []
    for count in range(1, len(steps) + 1):
        ids = torch.tensor([tokenizer.encode(problem + "\n\n".join(steps[:count]))])
        hidden = _body(folder)(ids).last_hidden_state[0, -1]
        head = hidden @ weights["weight"][0].float() + weights["bias"][0].float()
        scores.append(head.sigmoid().item())
    return scores


# A test asks for many paths of one checkpoint.
@cache
def _tokenizer(folder: Path) -> Any:
    return AutoTokenizer.from_pretrained(folder)


@cache
def _causal(folder: Path) -> Any:
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


@cache
def _classifier(folder: Path) -> Any:
    kind = AutoModelForTokenClassification
    return kind.from_pretrained(folder, dtype=torch.float32).eval()


@cache
def _body(folder: Path) -> Any:
    """The decoder without a head; it has to find each of its tensors in the file."""
    file = next(folder / name for name in _BODIES if (folder / name).exists())
    model = AutoModel.from_config(AutoConfig.from_pretrained(folder), dtype=torch.float32)
    weights = _weights(file).items()
    model.load_state_dict({k.removeprefix("model."): v for k, v in weights if k[:6] == "model."})
    return model.eval()


@cache
def _weights(file: Path) -> dict[str, torch.Tensor]:
    if file.suffix == ".safetensors":
        return load_file(file)
    return torch.load(file, weights_only=True)


def _linear(weights: dict[str, torch.Tensor], name: str) -> nn.Linear:
    weight, bias = weights[f"{name}.weight"].float(), weights[f"{name}.bias"].float()
    layer = nn.Linear(weight.shape[1], weight.shape[0])
    layer.load_state_dict({"weight": weight, "bias": bias})
    return layer
