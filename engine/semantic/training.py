"""Training predictors: AdamW on the squared error, split by problem, with an early stop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise

import numpy as np

from engine.errors import EngineError
from engine.protocol.events import Trouble
from engine.semantic.data import Samples
from engine.semantic.features import Feature, feature
from engine.semantic.predictors import Predictor, Role, shape

RATE = 1e-3
BETAS = (0.9, 0.95)
BATCH = 64
EPOCHS = 100
PATIENCE = 10
SPLIT = (0.7, 0.2)
"""Problems to learn from, and to stop by; the others are kept for the test."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Rows of some samples, no problem being in two of them."""

    learn: np.ndarray
    stop: np.ndarray
    test: np.ndarray


def parts(samples: Samples, seed: int) -> Parts:
    """Split by problem.

    Raises:
        EngineError: there are too few problems.
    """
    problems = np.unique(samples.problems)
    if len(problems) < 10:
        raise EngineError(
            Trouble.USAGE,
            f"There are labelled samples of too few problems to learn from: {len(problems)}.",
            "Collect samples of 10 at least, better of some hundreds, and then label them.",
        )
    order = np.random.default_rng(seed).permutation(problems)
    first = round(SPLIT[0] * len(order))
    second = first + round(SPLIT[1] * len(order))
    rows = [
        np.flatnonzero(np.isin(samples.problems, some))
        for some in (order[:first], order[first:second], order[second:])
    ]
    return Parts(*rows)


def check(samples: Samples, seed: int) -> None:
    """Refuse at once what `train` would.

    Raises:
        EngineError: torch is missing, or there are too few problems.
    """
    parts(samples, seed)
    if find_spec("torch") is None:
        raise EngineError(
            Trouble.USAGE,
            "Training needs torch, which is not installed.",
            "Install it with: pip install 'sapwood[torch]'",
        )


def train(
    role: Role,
    kind: Feature,
    samples: Samples,
    seed: int,
    *,
    noise: float = 0.0,
    tell: Callable[[int, float, float], None] = lambda epoch, learnt, stopped: None,
) -> Predictor:
    """Train a predictor on samples that `check` lets pass.

    Args:
        noise: share of the labels to learn from that are replaced by random ones.
        tell: told of each epoch, and the errors on what is learnt from and on what stops it.
    """
    import torch
    from torch import nn

    split = parts(samples, seed)
    inputs = feature(kind, samples.means)
    # Values of any scale are learnt from as if they had the same; the first layer takes it back.
    middle, scale = inputs[split.learn].mean(0), inputs[split.learn].std(0) + 1e-6
    labels = samples.labels.copy()
    rng = np.random.default_rng(seed)
    wrong = split.learn[rng.random(len(split.learn)) < noise]
    labels[wrong] = rng.random(len(wrong))
    torch.manual_seed(seed)
    x = torch.from_numpy((inputs - middle) / scale)
    y = torch.from_numpy(labels)
    sizes = shape(role, inputs.shape[1], samples.means.shape[2])
    linear = [nn.Linear(a, b) for a, b in pairwise(sizes)]
    net = nn.Sequential(linear[0], nn.ReLU(), linear[1], nn.ReLU(), linear[2], nn.Sigmoid())
    optimiser = torch.optim.AdamW(net.parameters(), lr=RATE, betas=BETAS)

    def error(rows: np.ndarray) -> float:
        with torch.inference_mode():
            return float(((net(x[rows])[:, 0] - y[rows]) ** 2).mean())

    best, kept, waited = float("inf"), net.state_dict(), 0
    for epoch in range(1, EPOCHS + 1):
        order = rng.permutation(split.learn)
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH]
            loss = ((net(x[rows])[:, 0] - y[rows]) ** 2).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        stopped = error(split.stop)
        tell(epoch, error(split.learn), stopped)
        if stopped < best:
            best, waited = stopped, 0
            kept = {name: value.clone() for name, value in net.state_dict().items()}
        else:
            waited += 1
            if waited == PATIENCE:
                break
    net.load_state_dict(kept)
    layers = [(layer.weight.detach().numpy(), layer.bias.detach().numpy()) for layer in linear]
    weight, bias = layers[0]
    moved = bias - weight @ (middle / scale)
    layers[0] = ((weight / scale).astype(np.float32), moved.astype(np.float32))
    return Predictor(role, kind, tuple(layers), seed)
