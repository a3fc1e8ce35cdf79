"""Collecting samples: contexts along the target's own solutions, and steps of both models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from engine.models.base import Vocabulary
from engine.models.sampling import Draws
from engine.semantic.data import Context, Folder, Labelled
from engine.semantic.labels import Clusters, shares
from engine.semantic.steps import StepReader

_DRAFT, _TARGET = 0, 1


def collect(
    folder: Folder,
    prompts: Sequence[Sequence[int]],
    draft: StepReader,
    target: StepReader,
    *,
    samples: int,
    most_steps: int,
    longest: int,
    seed: int,
    done: int,
) -> Iterator[int]:
    """Sample steps after every step of a solution to each problem; yields the problems done.

    The solution is the target's: it goes on with the first step that was sampled.

    Args:
        prompts: tokens of the problems, the same for both models.
        longest: tokens of the longest context.
        done: problems that the folder has already.
    """
    vocabulary = target.model.vocabulary
    for problem in range(done, len(prompts)):
        for model in (draft, target):
            model.begin(prompts[problem])
        contexts: list[Context] = []
        of_draft: list[np.ndarray] = []
        of_target: list[np.ndarray] = []
        text = ""
        length = len(prompts[problem])
        for step in range(most_steps):
            drafts, targets = (
                model.sample([Draws(seed, (problem, step, who, i)) for i in range(samples)])
                for who, model in ((_DRAFT, draft), (_TARGET, target))
            )
            of_draft.append(draft.read(drafts))
            of_target.append(target.read([*drafts, *targets]))
            written = [
                [
                    b"".join(map(vocabulary.piece, tokens)).decode(errors="replace")
                    for tokens in some
                ]
                for some in (drafts, targets)
            ]
            following = targets[0]
            length += len(following)
            ended = vocabulary.is_end(following[-1]) or step == most_steps - 1 or length > longest
            contexts.append(
                Context(
                    problem=problem, text=text, drafts=written[0], targets=written[1], ended=ended
                )
            )
            if ended:
                break
            text += written[1][0]
            for model in (draft, target):
                model.extend(following)
        folder.add(contexts, np.concatenate(of_draft), np.concatenate(of_target))
        yield problem + 1


def _text(vocabulary: Vocabulary, tokens: Sequence[int]) -> str:
    return b"".join(map(vocabulary.piece, tokens)).decode(errors="replace")


def label(contexts: Sequence[Context], clusters: Clusters) -> Iterator[Labelled]:
    """The labels of each context."""
    for context in contexts:
        found = clusters(context.text, [*context.drafts, *context.targets])
        count = len(context.drafts)
        drafted, sampled = found[:count], found[count:]
        yield Labelled(
            problem=context.problem,
            draft=shares(drafted, drafted),
            target=shares(found, sampled),
        )
