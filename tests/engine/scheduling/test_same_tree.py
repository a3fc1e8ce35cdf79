"""How a search is computed never changes what it finds."""

from __future__ import annotations

import pytest

from engine.models.llama import LlamaWeights
from engine.protocol.events import StepScored
from tests.engine.scheduling.searching import Searched, searched


@pytest.fixture(scope="module")
def usual(seedling_generator: LlamaWeights, seedling_verifier: LlamaWeights) -> Searched:
    return searched(seedling_generator, seedling_verifier)


def check_same(one: Searched, other: Searched) -> None:
    assert other.tree == one.tree
    assert [c.text for c in other.completed] == [c.text for c in one.completed]
    for lineage, scores in one.scores.items():
        if lineage not in one.tree:
            continue  # a draft that came to nothing
        assert other.scores[lineage] == pytest.approx(scores, abs=2e-3)


def test_the_same_seed_gives_the_same_tree(
    usual: Searched, seedling_generator: LlamaWeights, seedling_verifier: LlamaWeights
) -> None:
    assert usual.completed
    assert len(usual.tree) == usual.counts.nodes
    check_same(usual, searched(seedling_generator, seedling_verifier))


def test_the_order_of_a_batch_does_not_matter(
    usual: Searched, seedling_generator: LlamaWeights, seedling_verifier: LlamaWeights
) -> None:
    check_same(usual, searched(seedling_generator, seedling_verifier, shuffle=True))


def test_writing_equal_siblings_once_does_not_matter(
    usual: Searched, seedling_generator: LlamaWeights, seedling_verifier: LlamaWeights
) -> None:
    apart = searched(seedling_generator, seedling_verifier, deduplicate=False)
    check_same(usual, apart)


@pytest.mark.parametrize("paths", [2, 3, 5])
def test_few_paths_do_not_matter(
    usual: Searched, paths: int, seedling_generator: LlamaWeights, seedling_verifier: LlamaWeights
) -> None:
    check_same(usual, searched(seedling_generator, seedling_verifier, paths=paths))


def test_a_cache_that_holds_one_path_gives_the_same_tree(
    seedling_generator: LlamaWeights, seedling_verifier: LlamaWeights
) -> None:
    problem = " ".join(["Tom has 12 apples. He buys 7 more apples."] * 12) + " How many?"
    runs = [
        searched(
            seedling_generator, seedling_verifier, capacity=capacity, context=250, problem=problem
        )
        for capacity in (2048, 256)
    ]
    check_same(*runs)
    assert runs[1].counts.recomputed > runs[0].counts.recomputed


def test_nothing_is_verified_twice(
    seedling_generator: LlamaWeights, seedling_verifier: LlamaWeights
) -> None:
    # Siblings verified at different times each read what they share.
    patient = searched(seedling_generator, seedling_verifier, early_scores=False)
    assert patient.fed == patient.unique


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.8, 1.0])
def test_a_run_goes_on_from_any_point_of_its_log(
    usual: Searched,
    share: float,
    seedling_generator: LlamaWeights,
    seedling_verifier: LlamaWeights,
) -> None:
    past = usual.past(int(share * len(usual.events)))
    resumed = searched(seedling_generator, seedling_verifier, past=past)
    # Drafts that come to nothing depend on how long passes take; they are no part of a tree.
    assert resumed.tree.keys() == usual.tree.keys() - past.nodes.keys()
    assert resumed.tree.items() <= usual.tree.items()
    assert [c.text for c in resumed.completed] == [c.text for c in usual.completed]
    scored = {e.lineage for e in resumed.events if isinstance(e, StepScored)}
    assert not scored & {name for name, node in past.nodes.items() if node.scores is not None}


@pytest.mark.parametrize("policy", ["dvts", "best-of-n", "dynamic", "vg"])
def test_every_policy_gives_the_same_tree_in_a_small_cache(
    policy: str, seedling_generator: LlamaWeights, seedling_verifier: LlamaWeights
) -> None:
    runs = [
        searched(seedling_generator, seedling_verifier, policy, capacity=c, paths=p)
        for c, p in ((2048, None), (256, 4))
    ]
    check_same(*runs)


def test_256_paths_end_with_fewer_places_in_the_cache(seedling_generator: LlamaWeights) -> None:
    run = searched(
        seedling_generator, None, "majority", n=256, paths=256, capacity=4096, max_steps=2, step=24
    )
    assert sum(1 for lineage in run.tree if len(lineage) == 1) == 256
    assert len(run.tree) == run.counts.nodes
