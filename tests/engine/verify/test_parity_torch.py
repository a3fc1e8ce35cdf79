"""Scores by our engine, step by step over a branching tree, against the whole model card's way.

The checkpoints have the architectures, names and ids of the published models, scaled down, and
random weights.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Protocol

import pytest

from engine import catalogue
from engine.checkpoints.folder import open_checkpoint, open_files
from engine.errors import EngineError
from engine.models.chat import ChatTemplate
from engine.models.hf.model import HfModel
from engine.models.hf.weights import HfWeights
from engine.models.sampling import Draws
from engine.models.stop import StopSignal
from engine.scheduling.node import Node
from engine.verify.formats import bind
from engine.verify.heads import Head, find_head
from engine.verify.prm import Judged, Prm
from tests.engine.checkpoints import Family, whole_path_scores

TOLERANCE = 1e-5
"""The engine's promise is 2e-3; in float32 nothing but the order of sums differs."""
PROBLEM = "Tom has 12 apples. He buys 7 more apples. How many apples does he have?"
FIRST = ("Tom starts with 12 apples.", "He has 12 apples; he buys 7.", "Let's verify: 12 - 7 = 5.")
SECOND = ("He buys 7 more, so he has 12 + 7 = 19 apples.", "So he has 12 + 7 = 20 apples.")
LAST = ("The answer is \\boxed{19}.", "No, it is \\boxed{20}")
FORMATS: dict[Family, str] = {
    "math-shepherd": "math-shepherd",
    "rlhflow": "rlhflow",
    "versaprm": "versaprm",
    "skywork": "skywork",
    "qwen2.5-math-prm": "qwen2.5-math-prm",
    "trl": "trl",
    "reasonflux-1.5b": "reasonflux-1.5b",
}
HEAD = Head("any", (), {})


class Open(Protocol):
    def __call__(self, family: Family, paths: int = 64, *, whole_paths: bool = False) -> Prm: ...


@pytest.fixture(scope="module")
def verifier(checkpoint: Callable[[Family], Path]) -> Open:
    """A verifier with an empty cache."""

    @cache
    def weights(family: Family) -> HfWeights:
        return HfWeights(checkpoint(family), device="cpu", threads=1)

    def opened(family: Family, paths: int = 64, *, whole_paths: bool = False) -> Prm:
        loaded = weights(family)
        model = HfModel(loaded, capacity=2048, paths=paths, stop=StopSignal())
        format = catalogue.load().format(FORMATS[family])
        head = None
        if format.head:
            files = open_checkpoint(checkpoint(family))
            tensors = open_files([files.head_file]) if files.head_file else files.tensors
            head = find_head(tensors, family)
        bound = bind(format, loaded.vocabulary, loaded.template, head)
        return Prm(model, bound, PROBLEM, whole_paths=whole_paths)

    return opened


def grown(verifier: Prm) -> list[Judged]:
    """The leaves of a tree of three rounds, in which every second node goes on."""
    parents = [verifier.root]
    leaves: list[Judged] = []
    for steps in (FIRST, SECOND, LAST):
        judged = verifier.score([(parent, [step]) for parent in parents for step in steps])
        parents = judged[::2]
        leaves += judged[1::2]
    return leaves + parents


@pytest.mark.parametrize("family", FORMATS)
def test_scores_over_a_tree_are_those_of_each_whole_path(
    family: Family, verifier: Open, checkpoint: Callable[[Family], Path]
) -> None:
    prm = verifier(family)
    leaves = grown(prm)
    assert prm.fed_tokens == prm.unique_tokens()
    last: set[float] = set()
    for leaf in leaves:
        expected = whole_path_scores(family, checkpoint(family), PROBLEM, leaf.steps)
        scores = leaf.scores_since(prm.root)
        assert scores == pytest.approx(expected, abs=TOLERANCE)
        last.add(round(scores[-1], 4))
    assert len(last) > len(leaves) / 2


@pytest.mark.parametrize("paths", [2, 3, 8])
def test_a_step_whose_end_is_read_apart_needs_no_path_more(paths: int, verifier: Open) -> None:
    many, few = (verifier("reasonflux-1.5b", count) for count in (64, paths))
    for leaf, same in zip(grown(many), grown(few), strict=True):
        found = same.scores_since(few.root)
        assert found == pytest.approx(leaf.scores_since(many.root), abs=TOLERANCE)


def test_several_steps_at_once_have_their_ends_read_apart(verifier: Open) -> None:
    steps = (FIRST[0], SECOND[0], LAST[0])
    scores: list[tuple[float, ...]] = []
    for whole_paths in (False, True):
        prm = verifier("reasonflux-1.5b", whole_paths=whole_paths)
        (judged,) = prm.score([(prm.root, steps)])
        scores.append(judged.scores_since(prm.root))
        judged = prm.root
        for step in steps:
            (judged,) = prm.score([(judged, [step])])
        scores.append(judged.scores_since(prm.root))
    for found in scores[1:]:
        assert found == pytest.approx(scores[0], abs=TOLERANCE)


@pytest.mark.parametrize("family", FORMATS)
def test_later_text_changes_no_score(family: Family, verifier: Open) -> None:
    steps = (FIRST[0], SECOND[0], LAST[0])
    scores: list[tuple[float, ...]] = []
    for count in (1, 2, 3):
        prm = verifier(family)
        (judged,) = prm.score([(prm.root, steps[:count])])
        scores.append(judged.scores_since(prm.root))
    for few in scores:
        assert few == pytest.approx(scores[-1][: len(few)], abs=TOLERANCE)


@pytest.mark.parametrize("family", FORMATS)
def test_a_delimiter_at_the_end_adds_no_step(family: Family, verifier: Open) -> None:
    text = "\n\n".join((FIRST[0], SECOND[0]))
    scores: list[tuple[float, ...]] = []
    for written in (text, text + "\n\n", text + "\n\n\n\n"):
        node = Node((0,), None, Draws(0, ()), 99, True, text=written)
        prm = verifier(family)
        (judged,) = prm.score([(prm.root, node.steps)])
        scores.append(judged.scores_since(prm.root))
    assert len(scores[0]) == 2
    assert scores[1:] == scores[:1] * 2


@pytest.mark.parametrize(
    ("name", "family", "words"),
    [
        ("qwen2.5-math-prm", "skywork", "the step marker '<extra_0>' as "),
        ("skywork", "rlhflow", "the control token '<|im_start|>' as "),
        ("math-shepherd", "versaprm", "the step marker 'ки' as "),
        ("versaprm", "math-shepherd", "the step marker ' \\n\\n\\n\\n' as "),
        ("rlhflow", "math-shepherd", "the good token '+' as token 648, not as token 10"),
    ],
)
def test_the_tokenizer_of_another_model_is_refused(
    name: str, family: Family, words: str, verifier: Open
) -> None:
    model = verifier(family).model
    with pytest.raises(EngineError) as refusal:
        bind(catalogue.load().format(name), model.vocabulary, ChatTemplate(""), HEAD)
    assert words in refusal.value.message
