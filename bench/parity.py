"""Scores of converted verifiers against those of their checkpoints, by the type of the weights.

The checkpoints are of the published architectures with random weights, scaled down to rows that
K-quants fit into; random weights have no redundancy, and lose more than trained ones. The seedling
is trained, but so narrow that llama.cpp takes larger types for most of it.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
import torch
from transformers import AutoModelForCausalLM

from bench.table import markdown
from engine import catalogue, seedling
from engine.convert.convert import convert
from engine.models.chat import ChatTemplate
from engine.models.llama import LlamaModel, LlamaWeights
from engine.models.llama_vocabulary import vocabulary_of
from engine.models.stop import StopSignal
from engine.protocol.conversion import BodyType, Convert
from engine.seedling.checkpoint import write_checkpoint
from engine.seedling.corrupt import corrupt
from engine.seedling.problems import held_out
from engine.verify.formats import bind
from engine.verify.heads import head_of
from engine.verify.prm import Prm
from tests.engine.checkpoints import FAMILIES, Family, build, whole_path_scores
from tests.engine.checkpoints.families import Scale

_KINDS: tuple[BodyType, ...] = ("f16", "q8_0", "q6_k", "q4_k_m")
_CONTEXT = 1024
SEEDLING = "seedling"
_FAMILIES = (SEEDLING, *(family for family in FAMILIES if family != "generator"))


@dataclass(frozen=True, slots=True)
class Solution:
    problem: str
    steps: tuple[str, ...]


def solutions(count: int) -> list[Solution]:
    """Right and wrong solutions of arithmetic stories, by turns."""
    chance = random.Random(3)
    return [
        Solution(problem.text, tuple(corrupt(problem, chance) if number % 2 else problem.steps))
        for number, problem in enumerate(held_out(count, seed=3))
    ]


def converted_scores(body: Path, asked: Sequence[Solution]) -> Iterator[list[float]]:
    """Scores of each solution, step after step, by llama.cpp."""
    weights = LlamaWeights(body)
    format = catalogue.load().format(weights.header.text("sapwood.prm.format"))
    template = ChatTemplate(
        weights.header.text("tokenizer.chat_template"), bos=weights.vocabulary.bos.decode()
    )
    bound = bind(format, weights.vocabulary, template, head_of(body) if format.head else None)
    model = LlamaModel(weights, capacity=_CONTEXT, paths=4, outputs=64, stop=StopSignal())
    for solution in asked:
        model.reset()
        prm = Prm(model, bound, solution.problem)
        judged = prm.root
        for step in _steps(format.name, solution):
            (judged,) = prm.score([(judged, [step])])
        yield list(judged.scores_since(prm.root))
    model.close()
    weights.close()


def seedling_scores(folder: Path, asked: Sequence[Solution]) -> Iterator[list[float]]:
    """Scores of the seedling's verifier in transformers, each solution in one pass."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    with vocabulary_of(seedling.verifier_path()) as vocabulary:
        bound = bind(catalogue.load().format("seedling"), vocabulary, ChatTemplate(""))
        for solution in asked:
            tokens = bound.opening(solution.problem)
            places: list[int] = []
            for count in range(1, len(solution.steps) + 1):
                tokens += bound.step(solution.problem, solution.steps[:count], tokens)
                places.append(len(tokens) - 1)
            with torch.inference_mode():
                logits = model(torch.tensor([tokens])).logits[0, places]
            yield logits[:, bound.pair].softmax(dim=1)[:, 0].tolist()


def _steps(family: str, solution: Solution) -> Sequence[str]:
    """One score for all there is, of a family that gives no others."""
    return ["\n\n".join(solution.steps)] if family == "reasonflux-1.5b" else solution.steps


def compare(family: str, folder: Path, asked: Sequence[Solution]) -> list[object]:
    """A row of the table: largest and mean difference by type."""
    if family == SEEDLING:
        checkpoint = write_checkpoint(seedling.verifier_path(), folder / family)
        whole = seedling_scores(checkpoint, asked)
    else:
        kind = cast(Family, family)
        checkpoint = build(kind, folder / family, scale=Scale(width=256, layers=2))
        whole = (whole_path_scores(kind, checkpoint, s.problem, s.steps) for s in asked)
    expected = [score for scores in whole for score in scores]
    row: list[object] = [family, len(expected), f"{np.std(expected):.3f}"]
    for kind in _KINDS:
        body = folder / f"{family}-{kind}.gguf"
        work = folder / "work"
        work.mkdir(exist_ok=True)
        order = Convert(
            folder=str(checkpoint), kind=kind, out=str(body), work=str(work), format=family
        )
        convert(order, lambda _: None)
        found = [score for scores in converted_scores(body, asked) for score in scores]
        differences = np.abs(np.subtract(found, expected))
        row.append(f"{differences.max():.5f} ({differences.mean():.5f})")
        body.unlink()
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--solutions", type=int, default=8)
    parser.add_argument("--families", nargs="*", choices=_FAMILIES, default=_FAMILIES)
    options = parser.parse_args()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    torch.set_num_threads(1)
    asked = solutions(options.solutions)
    rows: list[list[object]] = []
    with tempfile.TemporaryDirectory() as folder:
        for family in options.families:
            print(family, file=sys.stderr)
            rows.append(compare(family, Path(folder), asked))
    title = "Scores in llama.cpp against transformers: largest difference (mean difference)"
    print(markdown(title, ["family", "scores", "spread", *_KINDS], rows))


if __name__ == "__main__":
    main()
