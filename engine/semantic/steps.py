"""Sampling many next steps of one context, and reading them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.models.base import Span, StatesModel
from engine.models.sampling import Draws, Sampler
from engine.models.step_text import StepText

_CONTEXT = 0
"""The path that holds the context."""


class StepReader:
    """One model with a context, from which steps are sampled and read.

    The context's last token is never on its path, since what follows is drawn from it.

    Args:
        model: with paths for as many steps as are sampled at once, and one more.
        limit: tokens a step may have.
    """

    def __init__(self, model: StatesModel, sampler: Sampler, limit: int) -> None:
        self.model = model
        self._sampler = sampler
        self._limit = limit
        self._known: list[int] = []

    def begin(self, tokens: Sequence[int]) -> None:
        """Have a new context."""
        self.model.reset()
        self._known = []
        self.extend(tokens)

    def extend(self, tokens: Sequence[int]) -> None:
        """Go on with the context."""
        self._known += tokens
        done = self.model.length(_CONTEXT)
        if new := self._known[done:-1]:
            self.model.forward([Span((_CONTEXT,), new, ())])

    def sample(self, draws: Sequence[Draws]) -> list[list[int]]:
        """A step for each stream of random numbers: tokens up to the delimiter or the end."""
        vocabulary = self.model.vocabulary
        steps: list[list[int]] = [[] for _ in draws]
        texts = [StepText() for _ in draws]
        first = Span((_CONTEXT,), self._known[-1:])
        logits = np.repeat(self.model.forward([first]), len(draws), axis=0)
        going = list(range(len(draws)))
        for index in going:
            self.model.fork(_CONTEXT, index + 1)
        while going:
            still: list[int] = []
            for index, row in zip(going, logits, strict=True):
                uniform = draws[index].uniform(len(steps[index]))
                (token,) = self._sampler.draw(row, [uniform])
                steps[index].append(token)
                if vocabulary.is_end(token):
                    continue
                texts[index].append(vocabulary.piece(token))
                if not texts[index].ended and len(steps[index]) < self._limit:
                    still.append(index)
            going = still
            if going:
                logits = self.model.forward([Span((i + 1,), steps[i][-1:]) for i in going])
        for index in range(len(draws)):
            self.model.drop(index + 1)
        self.model.shorten(_CONTEXT, len(self._known) - 1)
        return steps

    def read(self, steps: Sequence[Sequence[int]]) -> np.ndarray:
        """The mean states of steps, shape (steps, layers, width); equal ones are read once."""
        different = list(dict.fromkeys(map(tuple, steps)))
        for index in range(len(different)):
            self.model.fork(_CONTEXT, index + 1)
        spans = [
            Span((index + 1,), [self._known[-1], *step[:-1]], ())
            for index, step in enumerate(different)
        ]
        _, sums = self.model.read(spans)
        for index in range(len(different)):
            self.model.drop(index + 1)
        means = sums / np.array([[[len(step)]] for step in different])
        places = {step: index for index, step in enumerate(different)}
        return means[[places[tuple(step)] for step in steps]]
