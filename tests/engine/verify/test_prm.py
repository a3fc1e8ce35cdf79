"""Scoring step by step with the cache of what was scored before."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from gguf import GGUFReader

from engine import catalogue, seedling
from engine.errors import EngineError
from engine.models.chat import ChatTemplate
from engine.models.llama import LlamaModel, LlamaWeights
from engine.verify.formats import PrmFormat, bind
from engine.verify.prm import Judged, Prm
from tests.engine.real_models import opened

TOLERANCE = 2e-3
PROBLEM = "Tom has 12 apples. He buys 7 more apples. How many apples does he have?"
STEPS = (
    "Tom starts with 12 apples.",
    "He buys 7 more, so he has 12 + 7 = 19 apples.",
    "He buys 7 more, so he has 12 + 7 = 20 apples.",
    "Now he has 19 apples.",
    "The answer is \\boxed{19}.",
)


@pytest.fixture
def model(seedling_verifier: LlamaWeights) -> Iterator[LlamaModel]:
    with opened(seedling_verifier, capacity=1024, paths=34, outputs=64) as model:
        yield model


def prm(model: LlamaModel, problem: str = PROBLEM, format: PrmFormat | None = None) -> Prm:
    model.reset()
    format = format or catalogue.load().format("seedling")
    return Prm(model, bind(format, model.vocabulary, ChatTemplate("")), problem)


def fresh(model: LlamaModel, steps: Sequence[str]) -> tuple[float, ...]:
    """Scores of a path with nothing computed before."""
    verifier = prm(model)
    (judged,) = verifier.score([(verifier.root, steps)])
    return judged.scores_since(verifier.root)


def grown(verifier: Prm, rounds: int, width: int, keep: int) -> list[Judged]:
    """A beam search's requests: `keep` survivors a round, each with `width` children."""
    chance = random.Random(4)
    survivors = [verifier.root]
    for _ in range(rounds):
        requests = [(parent, [chance.choice(STEPS)]) for parent in survivors for _ in range(width)]
        judged = verifier.score(requests)
        survivors = list({id(node): node for node in judged}.values())[:keep]
        for node in judged:
            if node not in survivors:
                verifier.release(node)
    return survivors


def test_scores_step_by_step_equal_those_of_the_whole_path(model: LlamaModel) -> None:
    whole = fresh(model, STEPS)
    verifier = prm(model)
    judged = verifier.root
    for step in STEPS:
        (judged,) = verifier.score([(judged, [step])])
    assert judged.scores_since(verifier.root) == pytest.approx(whole, abs=TOLERANCE)
    assert verifier.fed_tokens == verifier.unique_tokens()


def test_later_text_does_not_change_a_score(model: LlamaModel) -> None:
    for count in range(1, len(STEPS)):
        whole = fresh(model, STEPS)[:count]
        assert fresh(model, STEPS[:count]) == pytest.approx(whole, abs=TOLERANCE)


def test_each_step_has_one_score_between_0_and_1(model: LlamaModel) -> None:
    scores = fresh(model, STEPS)
    assert len(scores) == len(STEPS)
    assert all(0 <= score <= 1 for score in scores)


def test_no_steps_give_no_scores(model: LlamaModel) -> None:
    verifier = prm(model)
    (judged,) = verifier.score([(verifier.root, [])])
    assert judged is verifier.root
    assert judged.scores_since(verifier.root) == ()


def test_equal_steps_of_one_parent_are_scored_once(model: LlamaModel) -> None:
    verifier = prm(model)
    first, second, other = verifier.score([(verifier.root, [STEPS[i]]) for i in (0, 0, 1)])
    assert first is second
    assert first is not other
    fed = verifier.fed_tokens
    (again,) = verifier.score([(verifier.root, [STEPS[0]])])
    assert again is first
    assert verifier.fed_tokens == fed == verifier.unique_tokens()


def test_a_step_shared_by_a_pruned_and_a_kept_sibling_stays_in_the_cache(model: LlamaModel) -> None:
    verifier = prm(model)
    kept, pruned = verifier.score([(verifier.root, [STEPS[0]])] * 2)
    verifier.release(pruned)
    verifier.score([(kept, [STEPS[1]])])
    assert verifier.fed_tokens == verifier.unique_tokens()


def test_nothing_of_a_beam_search_is_fed_twice(model: LlamaModel) -> None:
    verifier = prm(model)
    grown(verifier, rounds=10, width=4, keep=2)
    assert verifier.fed_tokens == verifier.unique_tokens()


def test_the_problem_is_fed_once_for_paths_scored_at_different_times(model: LlamaModel) -> None:
    verifier = prm(model)
    for step in ("12 apples.", "He buys 7.", "The answer is 19."):
        verifier.score([(verifier.root, [step])])
    assert verifier.fed_tokens == verifier.unique_tokens()


def test_a_small_cache_gives_the_same_scores(
    model: LlamaModel, seedling_verifier: LlamaWeights
) -> None:
    verifier = prm(model)
    expected = [node.scores_since(verifier.root) for node in grown(verifier, 6, 4, 3)]
    for paths in (3, 8):
        with opened(seedling_verifier, capacity=256, paths=paths, outputs=64) as small:
            verifier = prm(small)
            nodes = grown(verifier, 6, 4, 3)
            for node, scores in zip(nodes, expected, strict=True):
                assert node.scores_since(verifier.root) == pytest.approx(scores, abs=TOLERANCE)
            assert verifier.fed_tokens > verifier.unique_tokens()


def test_adopted_steps_are_computed_only_when_something_follows(model: LlamaModel) -> None:
    expected = fresh(model, STEPS[:3])
    verifier = prm(model)
    known = verifier.adopt(verifier.root, STEPS[:2], (0.25, 0.5))
    assert verifier.fed_tokens == 0
    (next_step,) = verifier.score([(known, [STEPS[2]])])
    assert next_step.scores_since(verifier.root) == pytest.approx(
        (0.25, 0.5, expected[2]), abs=TOLERANCE
    )


def test_several_steps_at_once_are_scored_each(model: LlamaModel) -> None:
    verifier = prm(model)
    judged = verifier.score([(verifier.root, STEPS[:3]), (verifier.root, [STEPS[0], STEPS[3]])])
    assert [len(node.scores_since(verifier.root)) for node in judged] == [3, 2]
    assert judged[0].scores_since(verifier.root) == pytest.approx(
        fresh(model, STEPS[:3]), abs=TOLERANCE
    )


def test_steps_that_become_equal_in_the_format_are_both_scored(model: LlamaModel) -> None:
    numbered = PrmFormat(
        style="marker",
        good="<|good|>",
        bad="<|bad|>",
        opening="{problem}\n\n",
        step="Step {index}: {step}",
        marker="<|step|>",
        pieces=True,
    )
    verifier = prm(model, format=numbered)
    first, second = verifier.score([(verifier.root, [s]) for s in ("One.", "Step 1: One.")])
    assert first.score is not None
    assert first.score == second.score


def test_a_solution_longer_than_the_cache_is_told(seedling_verifier: LlamaWeights) -> None:
    with opened(seedling_verifier, capacity=256, paths=4, outputs=64) as small:
        verifier = prm(small)
        with pytest.raises(EngineError, match="longer than the verifier's cache of 256") as caught:
            verifier.score([(verifier.root, STEPS * 6)])
        assert "Use a larger --context" in caught.value.advice


def test_no_larger_context_is_advised_where_none_can_help(seedling_verifier: LlamaWeights) -> None:
    with opened(seedling_verifier, capacity=256, paths=4, outputs=64) as small:
        verifier = prm(small)
        with pytest.raises(EngineError, match=r"reads no more than 1,024 tokens") as caught:
            verifier.score([(verifier.root, STEPS * 24)])
        assert "--context" not in caught.value.advice
        full = Prm(small, verifier._format, PROBLEM, all_memory=True)
        with pytest.raises(EngineError, match="no memory for a larger one") as caught:
            full.score([(full.root, STEPS * 6)])
        assert "--context" not in caught.value.advice


def test_a_verifier_whose_weights_are_no_numbers_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    shutil.copy(seedling.verifier_path(), path)
    norm = next(t for t in GGUFReader(path).tensors if t.name == "output_norm.weight")
    with path.open("r+b") as file:
        file.seek(norm.data_offset)
        file.write(np.full(norm.data.shape, np.nan, np.float32).tobytes())
    weights = LlamaWeights(path)
    with opened(weights, capacity=256, paths=4, outputs=64) as model:
        verifier = prm(model)
        with pytest.raises(EngineError, match="gives scores that are no numbers"):
            verifier.score([(verifier.root, STEPS[:1])])
    weights.close()


def test_a_problem_longer_than_a_batch_is_read_in_several(model: LlamaModel) -> None:
    judge = prm(model, " ".join(["Tom has 12 apples."] * 120))
    (judged,) = judge.score([(judge.root, STEPS[:1])])
    assert len(judge.root.stem.tokens) > 512
    assert judged.score is not None
