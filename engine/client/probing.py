"""Training a pair of predictors for a draft model and its target, in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from pathlib import Path

from engine import catalogue
from engine.errors import EngineError
from engine.models.sampling import Sampler
from engine.protocol.events import Trouble
from engine.seedling.problems import training_problems
from engine.semantic import collecting, evaluation, training
from engine.semantic.acceptance import Acceptance
from engine.semantic.data import About, Folder, writing
from engine.semantic.evaluation import Agreement, Quality
from engine.semantic.features import FEATURES, Feature
from engine.semantic.labels import by_entailment, by_equations
from engine.semantic.nli import load_entailment
from engine.semantic.opening import check_same_vocabulary, check_two_models, opened
from engine.semantic.predictors import Predictor, load, save
from engine.semantic.steps import StepReader

__all__ = ["FEATURES", "Feature", "Report", "collect", "evaluate", "label", "stories", "train"]

DRAFT_FILE, TARGET_FILE = "draft.safetensors", "target.safetensors"
_STORIES = 12
"""Seed of the stories. None of those that are held out is among them."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is sampled."""

    samples: int
    """Steps of each model after each context."""
    step_tokens: int
    most_steps: int
    context: int
    """Tokens of the longest path."""


@dataclass(frozen=True, slots=True)
class Report:
    """How good a pair is."""

    draft: Quality
    target: Quality
    agreement: Agreement


def stories(count: int) -> list[str]:
    """Arithmetic stories for the seedling."""
    return [problem.text for problem in islice(training_problems(_STORIES), count)]


def collect(
    draft: str,
    target: str,
    problems: Sequence[str],
    out: Path,
    sizes: Sizes,
    *,
    temperature: float,
    seed: int,
) -> Iterator[int]:
    """Sample steps of both models; goes on with what `out` has. Yields the problems done.

    Raises:
        EngineError: a model cannot be used, or `out` has samples of something else, is damaged, or
            cannot be written.
    """
    files = [catalogue.generator_file(name) for name in (draft, target)]
    check_two_models(*files)
    paths = 2 * sizes.samples + 2
    capacity = sizes.context + paths * sizes.step_tokens
    folder = Folder(out)
    with (
        opened(files[0], capacity=capacity, paths=paths) as small,
        opened(files[1], capacity=capacity, paths=paths) as large,
    ):
        check_same_vocabulary(small.model.vocabulary, large.model.vocabulary)
        done = folder.begin(
            About(
                draft=small.subject,
                target=large.subject,
                samples=sizes.samples,
                step_tokens=sizes.step_tokens,
                most_steps=sizes.most_steps,
                context=sizes.context,
                temperature=temperature,
                seed=seed,
                problems=[sha256(problem.encode()).hexdigest() for problem in problems],
            )
        )
        prompts = [large.template.ask(large.model.vocabulary, problem) for problem in problems]
        sampler = Sampler(temperature)
        yield done
        yield from collecting.collect(
            folder,
            prompts,
            StepReader(small.model, sampler, sizes.step_tokens),
            StepReader(large.model, sampler, sizes.step_tokens),
            samples=sizes.samples,
            most_steps=sizes.most_steps,
            longest=sizes.context - sizes.step_tokens,
            seed=seed,
            done=done,
        )


def label(out: Path, nli: Path | None) -> int:
    """Label the samples in a folder; returns how many contexts were.

    Args:
        nli: a checkpoint that tells entailment; None compares equations and boxed answers.

    Raises:
        EngineError: there are no samples, they are damaged, the labels cannot be written, or the
            checkpoint cannot be used.
    """
    folder = Folder(out)
    folder.about()
    clusters = by_equations if nli is None else by_entailment(load_entailment(nli))
    return folder.label(collecting.label(folder.contexts(), clusters))


def train(
    out: Path,
    pair: Path,
    kind: Feature,
    *,
    seed: int,
    noise: float = 0.0,
    tell: Callable[[str, int, float, float], None] = lambda role, epoch, learnt, stopped: None,
) -> None:
    """Train the draft's predictor and the target's, and write them into the folder `pair`.

    Raises:
        EngineError: there are no labels, too few problems, or no torch, or they cannot be written.
    """
    folder = Folder(out)
    about = folder.about()
    of_draft, of_target = folder.samples()
    training.check(of_draft, seed)
    with writing(pair):  # before the work, not after it
        pair.mkdir(parents=True, exist_ok=True)
    small = training.train(
        "draft", kind, of_draft, seed, noise=noise, tell=lambda *at: tell("draft", *at)
    )
    large = training.train(
        "target", kind, of_target, seed, noise=noise, tell=lambda *at: tell("target", *at)
    )
    with writing(pair):
        save(pair / DRAFT_FILE, small, about.draft)
        save(pair / TARGET_FILE, large, about.target)


def evaluate(out: Path, pair: Path, *, floor: float) -> Report:
    """Measure a pair on the problems that neither learnt from, as the seed of its training says.

    Raises:
        EngineError: there are no labels, or the pair is missing, damaged or another models', or
            its two predictors were trained apart.
    """
    folder = Folder(out)
    about = folder.about()
    small: Predictor = load(pair / DRAFT_FILE, "draft", about.draft)
    large: Predictor = load(pair / TARGET_FILE, "target", about.target)
    if small.seed != large.seed:
        raise EngineError(
            Trouble.USAGE,
            f"The predictors in {pair} were trained with two seeds, {small.seed} and {large.seed}: "
            "no problem is surely new to both.",
            "Train both anew with: sapwood probe train",
        )
    samples = folder.samples()
    of_draft, of_target = samples
    return Report(
        evaluation.quality(small, of_draft, training.parts(of_draft, small.seed).test),
        evaluation.quality(large, of_target, training.parts(of_target, large.seed).test),
        evaluation.agreement(small, large, samples, Acceptance(floor=floor), small.seed),
    )
