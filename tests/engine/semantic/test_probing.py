"""From samples to predictors, and what they are worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine import seedling
from engine.client import probing
from engine.errors import EngineError
from engine.protocol.events import Trouble
from engine.semantic.data import Folder, Samples
from engine.semantic.evaluation import quality
from engine.semantic.training import parts, train

SIZES = probing.Sizes(samples=4, step_tokens=30, most_steps=4, context=200)


def samples(count: int = 600, problems: int = 40) -> Samples:
    """Labels that the first value of the last layer tells."""
    rng = np.random.default_rng(3)
    means = rng.standard_normal((count, 2, 16)).astype(np.float32) * 5 + 2
    labels = 1 / (1 + np.exp(-means[:, 1, 0] + 2))
    which = np.sort(rng.integers(0, problems, count))
    return Samples(means, labels.astype(np.float32), which, np.ones(count, bool))


def test_no_problem_is_on_two_sides() -> None:
    some = samples()
    split = parts(some, seed=1)
    sides = [set(some.problems[rows].tolist()) for rows in (split.learn, split.stop, split.test)]
    assert sum(map(len, sides)) == len(set.union(*sides)) == len(set(some.problems.tolist()))
    assert all(sides)


def test_a_predictor_learns_what_can_be_learnt_and_noise_costs() -> None:
    some = samples()
    test = parts(some, seed=1).test
    clean = quality(train("target", "last", some, 1), some, test)
    noisy = quality(train("target", "last", some, 1, noise=0.9), some, test)
    assert clean.correlation > 0.9
    assert clean.error < clean.spread / 4
    assert clean.error < noisy.error
    assert clean.calibration < 0.1


def test_the_same_seed_trains_the_same_predictor() -> None:
    first, second = (train("draft", "stacked", samples(200, 12), 5) for _ in range(2))
    for (one, _), (other, _) in zip(first.layers, second.layers, strict=True):
        np.testing.assert_array_equal(one, other)


def test_too_few_problems_are_refused() -> None:
    with pytest.raises(EngineError, match="too few"):
        parts(samples(50, 5), seed=0)


def collect(out: Path, count: int, seed: int = 0) -> list[int]:
    return sample(out, probing.stories(count), seed=seed)


def sample(
    out: Path, problems: Sequence[str], sizes: probing.Sizes = SIZES, seed: int = 0
) -> list[int]:
    draft, target = str(seedling.generator_path()), str(seedling.target_path())
    return list(probing.collect(draft, target, problems, out, sizes, temperature=1.0, seed=seed))


def test_a_model_does_not_draft_for_itself(tmp_path: Path) -> None:
    name = str(seedling.generator_path())
    with pytest.raises(EngineError, match="is the generator itself"):
        next(probing.collect(name, name, ["?"], tmp_path, SIZES, temperature=1.0, seed=0))


def test_collecting_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    whole, parted = tmp_path / "whole", tmp_path / "parted"
    assert collect(whole, 3) == [0, 1, 2, 3]
    assert collect(parted, 1) == [0, 1]
    with (parted / "contexts.jsonl").open("ab") as file:
        file.write(b'{"problem":1,"text":"","dra')  # an interruption
    assert collect(parted, 3) == [1, 2, 3]
    assert (parted / "contexts.jsonl").read_bytes() == (whole / "contexts.jsonl").read_bytes()
    assert Folder(parted).contexts() == Folder(whole).contexts()
    with pytest.raises(EngineError, match="other models or settings"):
        collect(parted, 3, seed=1)


def test_a_folder_takes_more_problems_but_no_others(tmp_path: Path) -> None:
    first, second, third = probing.stories(3)
    assert sample(tmp_path, [first, second]) == [0, 1, 2]
    assert sample(tmp_path, [first]) == [1]
    with pytest.raises(EngineError, match="samples of other problems"):
        sample(tmp_path, [first, third])
    with pytest.raises(EngineError, match="samples of other problems"):
        sample(tmp_path, [third])
    assert sample(tmp_path, [first, second, third]) == [2, 3]


@pytest.mark.parametrize("size", ["samples", "step_tokens", "most_steps", "context"])
def test_a_folder_takes_no_samples_of_another_size(tmp_path: Path, size: str) -> None:
    problems = probing.stories(1)
    sample(tmp_path, problems)
    with pytest.raises(EngineError, match="other models or settings"):
        sample(tmp_path, problems, replace(SIZES, **{size: getattr(SIZES, size) + 1}))


def test_labels_are_shares_of_samples(tmp_path: Path) -> None:
    collect(tmp_path, 2)
    assert probing.label(tmp_path, None) == len(Folder(tmp_path).contexts()) > 2
    of_draft, of_target = Folder(tmp_path).samples()
    assert len(of_target.labels) == 2 * len(of_draft.labels) == len(of_target.means)
    assert of_draft.labels.min() >= 1 / SIZES.samples
    assert of_target.labels[~of_target.drafted].min() >= 1 / SIZES.samples
    assert of_target.labels.min() == 0.0
    assert of_draft.means.shape[1:] == (4, 128)


def test_samples_without_labels_are_refused_with_the_command_that_makes_them(
    tmp_path: Path,
) -> None:
    out = tmp_path / "my samples"
    collect(out, 1)
    with pytest.raises(EngineError, match="have no labels") as refusal:
        Folder(out).samples()
    assert refusal.value.advice.endswith(f"sapwood probe label --data '{out}'")
    probing.label(out, None)
    before = len(Folder(out).contexts())
    collect(out, 2)
    after = len(Folder(out).contexts())
    with pytest.raises(EngineError, match=f"older than its samples.* {before} for {after} "):
        Folder(out).samples()
    probing.label(out, None)
    assert len(set(Folder(out).samples()[0].problems)) == 2


def test_samples_that_are_damaged_are_named(tmp_path: Path) -> None:
    collect(tmp_path, 1)
    probing.label(tmp_path, None)
    features = tmp_path / "features" / "000000.npz"
    features.write_bytes(features.read_bytes()[:100])
    with pytest.raises(EngineError, match=r"000000\.npz is damaged or missing"):
        Folder(tmp_path).samples()
    features.unlink()
    with pytest.raises(EngineError, match=r"000000\.npz is damaged or missing"):
        collect(tmp_path, 1)
    (tmp_path / "contexts.jsonl").write_text("no json\n")
    with pytest.raises(EngineError, match=r"contexts\.jsonl is damaged or missing"):
        Folder(tmp_path).contexts()
    (tmp_path / "about.json").write_text('{"garbage')
    with pytest.raises(EngineError, match=r"about\.json is damaged or missing"):
        Folder(tmp_path).about()


def test_samples_that_nothing_tells_about_are_not_gone_on_with(tmp_path: Path) -> None:
    collect(tmp_path, 1)
    (tmp_path / "about.json").unlink()
    with pytest.raises(EngineError, match=r"about\.json is damaged or missing"):
        collect(tmp_path, 1)


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(EngineError, match="cannot be written: Not a directory") as refusal:
        collect(tmp_path / "file" / "samples", 1)
    assert refusal.value.trouble is Trouble.STORAGE


def test_nothing_is_left_behind_where_there_is_too_little_to_learn_from(tmp_path: Path) -> None:
    collect(tmp_path, 1)
    probing.label(tmp_path, None)
    with pytest.raises(EngineError, match="too few"):
        probing.train(tmp_path, tmp_path / "pair", "last", seed=0)
    assert not (tmp_path / "pair").exists()


def test_a_folder_without_samples_is_told(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="has no samples"):
        probing.label(tmp_path, None)
