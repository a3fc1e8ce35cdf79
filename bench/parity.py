"""Scores by both engines, step by step over a tree, against those of each whole checkpoint.

A checkpoint is run in transformers, as its model card does it, in float32. It is of the published
architecture with random weights, scaled down to rows that K-quants fit into; random weights have no
redundancy, and lose more than trained ones. The seedling is trained, but so narrow that llama.cpp
takes larger types for most of it.

llama.cpp scores as `sapwood score` has it, and in one column as a search does, which sums attention
in 16 bits on a processor so that equal paths get equal bits.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
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
from engine.models.hf.model import HfModel
from engine.models.hf.weights import HfWeights
from engine.models.llama import LlamaModel, LlamaWeights
from engine.models.llama_vocabulary import vocabulary_of
from engine.models.stop import StopSignal
from engine.protocol.conversion import BodyType, Convert
from engine.seedling.checkpoint import write_checkpoint
from engine.seedling.corrupt import corrupt
from engine.seedling.problems import held_out
from engine.verify.formats import PrmFormat, bind
from engine.verify.heads import head_of
from engine.verify.prm import Prm
from tests.engine.checkpoints import FAMILIES, Family, build, whole_path_scores
from tests.engine.checkpoints.families import Scale
from tests.engine.verify.growing import grown

_KINDS: tuple[BodyType, ...] = ("f16", "q8_0", "q6_k", "q4_k_m")
_CONTEXT = 1024
_PATHS = 10
SEEDLING = "seedling"
_FAMILIES = (SEEDLING, *(family for family in FAMILIES if family != "generator"))


Scores = list[tuple[float, ...]]
"""Of a problem's paths, a score a step."""


@dataclass(frozen=True, slots=True)
class Question:
    """A problem and solutions of it whose first steps are the same."""

    problem: str
    paths: tuple[tuple[str, ...], ...]


def questions(count: int) -> list[Question]:
    """Arithmetic stories, each with its right solution and two that go wrong."""
    chance = random.Random(3)
    return [
        Question(p.text, (tuple(p.steps), *(tuple(corrupt(p, chance)) for _ in range(2))))
        for p in held_out(count, seed=3)
    ]


def converted_scores(
    body: Path, asked: Sequence[Question], *, searching: bool = False
) -> Iterator[Scores]:
    """Scores by llama.cpp."""
    weights = LlamaWeights(body)
    format = catalogue.load().format(weights.header.text("sapwood.prm.format"))
    head = head_of(body) if format.head else None
    bound = bind(format, weights.vocabulary, weights.template, head)
    model = LlamaModel(
        weights,
        capacity=_CONTEXT,
        paths=_PATHS,
        outputs=64,
        stop=StopSignal(),
        precise=not searching,
    )
    for question in asked:
        model.reset()
        yield grown(Prm(model, bound, question.problem), question.paths)
    model.close()
    weights.close()


def torch_scores(folder: Path, format: PrmFormat, asked: Sequence[Question]) -> Iterator[Scores]:
    """Scores by the engine on torch, in float32."""
    weights = HfWeights(folder, device="cpu", threads=1)
    head = head_of(folder) if format.head else None
    bound = bind(format, weights.vocabulary, weights.template, head)
    model = HfModel(weights, capacity=_CONTEXT, paths=_PATHS, stop=StopSignal())
    for question in asked:
        model.reset()
        yield grown(Prm(model, bound, question.problem), question.paths)


def seedling_scores(folder: Path, asked: Sequence[Question]) -> Iterator[Scores]:
    """Scores of the seedling's verifier in transformers, each path in one pass."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    with vocabulary_of(seedling.verifier_path()) as vocabulary:
        bound = bind(catalogue.load().format("seedling"), vocabulary, ChatTemplate(""))
        for question in asked:
            found: Scores = []
            for path in question.paths:
                tokens = bound.opening(question.problem)
                places: list[int] = []
                for count in range(1, len(path) + 1):
                    tokens += bound.step(question.problem, path[:count], tokens).tokens
                    places.append(len(tokens) - 1)
                with torch.inference_mode():
                    logits = model(torch.tensor([tokens])).logits[0, places]
                found.append(tuple(logits[:, bound.pair].softmax(dim=1)[:, 0].tolist()))
            yield found


def compare(family: str, folder: Path, asked: Sequence[Question]) -> list[object]:
    """A row of the table: largest and mean difference by engine and type."""
    if family == SEEDLING:
        checkpoint = write_checkpoint(seedling.verifier_path(), folder / family)
        whole = list(seedling_scores(checkpoint, asked))
    else:
        kind = cast(Family, family)
        checkpoint = build(kind, folder / family, scale=Scale(width=256, layers=2))
        whole = [
            [tuple(whole_path_scores(kind, checkpoint, q.problem, path)) for path in q.paths]
            for q in asked
        ]
    expected = _flat(whole)
    incremental = torch_scores(checkpoint, catalogue.load().format(family), asked)
    row: list[object] = [
        family,
        len(expected),
        f"{np.std(expected):.3f}",
        _difference(incremental, expected),
    ]
    for kind in _KINDS:
        body = folder / f"{family}-{kind}.gguf"
        work = folder / "work"
        work.mkdir(exist_ok=True)
        order = Convert(
            folder=str(checkpoint), kind=kind, out=str(body), work=str(work), format=family
        )
        convert(order, lambda _: None)
        row.append(_difference(converted_scores(body, asked), expected))
        if kind == "f16":
            row.append(_difference(converted_scores(body, asked, searching=True), expected))
        body.unlink()
    return row


def _flat(scores: Iterable[Scores]) -> list[float]:
    return [score for paths in scores for path in paths for score in path]


def _difference(found: Iterable[Scores], expected: Sequence[float]) -> str:
    differences = np.abs(np.subtract(_flat(found), expected))
    return f"{differences.max():.1e} ({differences.mean():.1e})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=8)
    parser.add_argument("--families", nargs="*", choices=_FAMILIES, default=_FAMILIES)
    options = parser.parse_args()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    torch.set_num_threads(1)
    asked = questions(options.problems)
    rows: list[list[object]] = []
    with tempfile.TemporaryDirectory() as folder:
        for family in options.families:
            rows.append(compare(family, Path(folder), asked))
            print(*rows[-1], sep="  ", file=sys.stderr, flush=True)
    title = "Scores against transformers: largest difference (mean difference)"
    engines = ("torch", "f16", "f16, searching", *_KINDS[1:])
    print(markdown(title, ["family", "scores", "spread", *engines], rows))


if __name__ == "__main__":
    main()
