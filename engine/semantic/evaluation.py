"""How good a pair of predictors is, on problems that neither learnt from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from engine.semantic.acceptance import Acceptance
from engine.semantic.data import Samples
from engine.semantic.features import feature
from engine.semantic.predictors import Predictor
from engine.semantic.training import parts

BINS = 10


@dataclass(frozen=True, slots=True)
class Bin:
    """Samples whose prediction lies in a tenth of the range."""

    count: int
    predicted: float
    labelled: float


@dataclass(frozen=True, slots=True)
class Quality:
    """How near predictions are to labels."""

    count: int
    error: float
    """Mean squared."""
    spread: float
    """Mean squared error of always predicting the mean label."""
    correlation: float
    """Pearson's."""
    bins: tuple[Bin, ...]

    @property
    def calibration(self) -> float:
        """Expected calibration error: mean distance of a bin's prediction from its label."""
        off = sum(b.count * abs(b.predicted - b.labelled) for b in self.bins)
        return off / max(1, self.count)


@dataclass(frozen=True, slots=True)
class Agreement:
    """What acceptance comes to on drafted steps."""

    accepted: float
    """Mean probability of being accepted, by the predictors."""
    ideal: float
    """The same by the labels."""
    meant: float
    """Share of drafted steps that the target means too: at least one of its samples does."""
    meant_accepted: float
    """The same of accepted steps."""
    meant_rejected: float


def quality(predictor: Predictor, samples: Samples, rows: np.ndarray) -> Quality:
    """Compare with the labels of some rows."""
    predicted = predictor(feature(predictor.feature, samples.means[rows]))
    labels = samples.labels[rows]
    which = np.minimum((predicted * BINS).astype(int), BINS - 1)
    bins = tuple(
        Bin(int(here.sum()), float(predicted[here].mean()), float(labels[here].mean()))
        for number in range(BINS)
        if (here := which == number).any()
    )
    varied = predicted.std() > 0 and labels.std() > 0
    return Quality(
        len(rows),
        float(((predicted - labels) ** 2).mean()),
        float(labels.var()),
        float(np.corrcoef(predicted, labels)[0, 1]) if varied else 0.0,
        bins,
    )


def agreement(
    draft: Predictor,
    target: Predictor,
    samples: tuple[Samples, Samples],
    acceptance: Acceptance,
    seed: int,
) -> Agreement:
    """What the pair accepts of the drafted steps kept for the test."""
    of_draft, of_target = samples
    test = np.unique(of_draft.problems[parts(of_draft, seed).test])
    own = np.isin(of_draft.problems, test)
    seen = np.isin(of_target.problems, test) & of_target.drafted
    q = draft(feature(draft.feature, of_draft.means[own]))
    p = target(feature(target.feature, of_target.means[seen]))
    chance = _chances(acceptance, p, q)
    ideal = _chances(acceptance, of_target.labels[seen], of_draft.labels[own])
    meant = of_target.labels[seen] > 0
    return Agreement(
        float(chance.mean()),
        float(ideal.mean()),
        float(meant.mean()),
        float((chance * meant).sum() / max(chance.sum(), 1e-9)),
        float(((1 - chance) * meant).sum() / max((1 - chance).sum(), 1e-9)),
    )


def _chances(acceptance: Acceptance, p: np.ndarray, q: np.ndarray) -> np.ndarray:
    chance: Callable[[float, float], float] = acceptance.probability
    return np.array([chance(float(a), float(b)) for a, b in zip(p, q, strict=True)])
