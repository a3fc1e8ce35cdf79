"""Muon for the matrices, AdamW for the embedding and the gains.

torch's own Muon orthogonalises in bfloat16, which is many times slower than
float32 on the processors this is meant for.
"""

from __future__ import annotations

from collections import defaultdict

import torch
from torch import Tensor, nn


def orthogonalise(matrices: Tensor, rounds: int = 5) -> Tensor:
    """Newton-Schulz: push all singular values of a stack of matrices towards 1."""
    a, b, c = 3.4445, -4.7750, 2.0315
    wide = matrices.shape[-1] >= matrices.shape[-2]
    x = matrices if wide else matrices.mT
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(rounds):
        square = x @ x.mT
        x = a * x + (b * square + c * square @ square) @ x
    return x if wide else x.mT


class Muon(torch.optim.Optimizer):
    """Momentum whose update is orthogonalised; matrices of one shape go together."""

    def __init__(self, parameters: list[nn.Parameter], lr: float, momentum: float = 0.95) -> None:
        super().__init__(parameters, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: object = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            by_shape: dict[torch.Size, list[nn.Parameter]] = defaultdict(list)
            for parameter in group["params"]:
                by_shape[parameter.shape].append(parameter)
            for shape, parameters in by_shape.items():
                updates = []
                for parameter in parameters:
                    assert parameter.grad is not None
                    state = self.state[parameter]
                    buffer = state.setdefault("momentum", torch.zeros_like(parameter))
                    buffer.lerp_(parameter.grad, 1 - group["momentum"])
                    updates.append(parameter.grad.lerp(buffer, group["momentum"]))
                scale = max(1.0, shape[0] / shape[1]) ** 0.5
                for parameter, update in zip(
                    parameters, orthogonalise(torch.stack(updates)), strict=True
                ):
                    parameter.add_(update, alpha=-group["lr"] * scale)


class Optimiser:
    """Both optimisers under one schedule: warm up, hold, fall to nothing."""

    def __init__(
        self,
        modules: list[nn.Module],
        steps: int,
        muon: float = 0.015,
        adam: float = 2e-3,
        warm_up: int = 40,
        fall: float = 0.5,
    ) -> None:
        self.parameters = [p for module in modules for p in module.parameters()]
        matrices = [
            p
            for module in modules
            for name, p in module.named_parameters()
            if p.dim() == 2 and name.startswith("blk.")
        ]
        chosen = {id(p) for p in matrices}
        rest = [p for p in self.parameters if id(p) not in chosen]
        self.optimisers = [
            Muon(matrices, lr=muon),
            torch.optim.AdamW(rest, lr=adam, betas=(0.9, 0.98), weight_decay=0.0),
        ]
        self.peaks = [muon, adam]
        self.steps, self.warm_up, self.fall = steps, warm_up, fall
        self.done = 0

    def rate(self) -> float:
        """The share of the peak rate that holds now."""
        rising = min(1.0, (self.done + 1) / self.warm_up)
        falling = min(1.0, (self.steps - self.done) / (self.steps * self.fall))
        return min(rising, falling)

    def step(self) -> None:
        nn.utils.clip_grad_norm_(self.parameters, 1.0)
        for optimiser, peak in zip(self.optimisers, self.peaks, strict=True):
            for group in optimiser.param_groups:
                group["lr"] = peak * self.rate()
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
        self.done += 1


def count(module: nn.Module) -> int:
    """How many parameters a module has."""
    return sum(parameter.numel() for parameter in module.parameters())
