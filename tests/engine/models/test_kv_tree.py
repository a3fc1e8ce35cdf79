"""What stays in a cache, what leaves it, and how it comes back."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from engine.models.base import Span
from engine.models.host_copies import HostCopies
from engine.models.kv_tree import KvTree, Stem
from engine.models.llama import LlamaModel, LlamaWeights
from tests.engine.real_models import append, opened


@pytest.fixture
def model(seedling_generator: LlamaWeights) -> Iterator[LlamaModel]:
    with opened(seedling_generator, capacity=256, paths=4) as model:
        yield model


@pytest.fixture
def tree(model: LlamaModel) -> KvTree:
    return KvTree(model)


def fill(tree: KvTree, stem: Stem) -> np.ndarray:
    """Compute a stem and leave it to be forked; logits after its last token."""
    claimed = tree.claim(stem)
    assert claimed is not None
    path, tokens = claimed
    assert tree.make_room(len(tokens))
    logits = append(tree.model, path, tokens)  # type: ignore[arg-type]
    tree.settle(path, stem)
    return logits


def test_a_claim_starts_from_the_nearest_stem_in_the_cache(tree: KvTree) -> None:
    root = Stem(None, range(10, 20))
    middle = Stem(root, [1, 2])
    tip = Stem(middle, [3, 4, 5])
    assert tip.tail(0) == [*range(10, 20), 1, 2, 3, 4, 5]
    fill(tree, root)
    assert tree.nearest(tip) is root
    claimed = tree.claim(tip)
    assert claimed is not None
    assert claimed[1] == [1, 2, 3, 4, 5]
    assert tree.model.used == 10


def test_a_stem_that_lacks_its_last_token_gives_it_to_be_fed(tree: KvTree) -> None:
    stem = Stem(None, [7, 8, 9])
    claimed = tree.claim(stem)
    assert claimed is not None
    tree.model.forward([Span((claimed[0],), claimed[1][:-1], ())])
    tree.settle(claimed[0], stem)
    again = tree.claim(stem)
    assert again is not None
    assert again[1] == [9]


def test_the_least_recently_used_stem_leaves_first(tree: KvTree) -> None:
    root = Stem(None, range(10, 20))
    stems = [Stem(root, [i, i + 1]) for i in range(3)]
    for stem in (root, *stems):
        fill(tree, stem)
    claimed = tree.claim(stems[0])  # every path is taken, and stems[1] has rested longest
    assert claimed is not None
    assert [tree.nearest(stem) for stem in stems] == [stems[0], root, stems[2]]


def test_a_stem_that_nobody_else_starts_from_hands_its_path_over(tree: KvTree) -> None:
    root = Stem(None, range(10, 20))
    fill(tree, root)
    tip = Stem(root, [1, 2])
    fill(tree, tip)
    claimed = tree.claim(tip, keep=False)
    assert claimed is not None
    assert claimed[1] == []
    assert tree.model.length(claimed[0]) == 12
    assert tree.nearest(tip) is root


def test_what_is_being_written_is_never_evicted(tree: KvTree) -> None:
    stems = [Stem(None, [i]) for i in range(4)]
    for stem in stems:
        assert tree.claim(stem) is not None
    assert tree.claim(Stem(None, [9])) is None
    assert tree.new_path() is None


def test_room_is_made_only_as_far_as_needed(tree: KvTree) -> None:
    first, second = Stem(None, range(100)), Stem(None, range(100, 200))
    fill(tree, first)
    fill(tree, second)
    assert tree.make_room(56)
    assert tree.evicted_tokens == 0
    assert tree.make_room(57)
    assert tree.evicted_tokens == 100
    assert tree.nearest(first) is None
    assert tree.nearest(second) is second
    assert not tree.make_room(257)


def test_an_evicted_stem_gives_the_same_logits_when_computed_again(tree: KvTree) -> None:
    root = Stem(None, range(20, 80))
    tip = Stem(root, range(30, 40))
    fill(tree, root)
    before = fill(tree, tip)
    assert tree.make_room(250)
    assert tree.nearest(tip) is None
    assert np.abs(fill(tree, tip) - before).max() < 0.02


def test_a_forgotten_stem_gives_its_cells_and_path_back(tree: KvTree) -> None:
    stem = Stem(None, range(50))
    fill(tree, stem)
    tree.forget(stem)
    tree.forget(stem)
    assert tree.model.used == 0
    assert [tree.new_path() for _ in range(5)].count(None) == 1


def test_a_stem_settled_twice_takes_one_path(tree: KvTree) -> None:
    stem = Stem(None, [1, 2])
    fill(tree, stem)
    fill(tree, Stem(stem, [3]))
    claimed = tree.claim(stem)
    assert claimed is not None
    tree.settle(claimed[0], stem)
    assert [tree.new_path() for _ in range(2)].count(None) == 0


def test_a_tree_is_forgotten_from_its_root(tree: KvTree) -> None:
    root = Stem(None, range(50))
    fill(tree, root)
    fill(tree, Stem(root, [1, 2]))
    other = Stem(None, range(7))
    fill(tree, other)
    tree.forget_below(root)
    assert tree.model.used == 7
    assert tree.nearest(other) is other
    assert tree.alone(0)


def test_a_copy_that_has_to_go_for_another_is_computed_instead(model: LlamaModel) -> None:
    root = Stem(None, range(10, 20))
    first, second = Stem(root, [1, 2, 3]), Stem(root, [4, 5, 6])
    tree = KvTree(model)
    fill(tree, root)
    before = fill(tree, first)
    held = tree.claim(first)
    assert held is not None
    tree.copies = HostCopies(model, model.save(held[0], 10).bytes)  # room for one
    fill(tree, second)
    assert tree.new_path() is not None
    assert tree.copies.kept() == [first]
    claimed = tree.claim(first)  # for which the other leaves, and takes the place of its copy
    assert claimed is not None
    path, tokens = claimed
    assert tree.copies.kept() == [second]
    assert tokens == [1, 2, 3]
    assert np.array_equal(append(model, path, tokens), before)


def test_a_copy_that_does_not_fit_is_computed_once_there_is_room(model: LlamaModel) -> None:
    tree = KvTree(model, HostCopies(model, 1 << 20))
    root = Stem(None, range(10, 20))
    first, second = Stem(root, [1] * 100), Stem(root, [2] * 200)
    fill(tree, root)
    fill(tree, first)
    assert tree.make_room(200)
    claimed = tree.claim(second)
    assert claimed is not None
    append(model, *claimed)
    again = tree.claim(first)
    assert again is not None
    assert again[1] == [1] * 100
    assert tree.restored_tokens == 0
    tree.drop(again[0])
    tree.drop(claimed[0])
    there = tree.claim(first)
    assert there is not None
    assert there[1] == []
    assert tree.restored_tokens == 100


def test_a_tree_needs_two_paths(seedling_generator: LlamaWeights) -> None:
    with opened(seedling_generator, capacity=256, paths=1) as model, pytest.raises(ValueError):  # noqa: PT011
        KvTree(model)
