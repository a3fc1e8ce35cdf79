"""Weights that leave a device while their model is idle, and come back."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn


class Parking:
    """Moves the weights of a module, which is loaded on the host, to `device` and back.

    Weights never change, so once they have rested the host keeps its copy: from then on a rest
    costs nothing, and waking up is one copy. Where there is a GPU the copy lies in pinned memory,
    which can be copied from without a detour.
    """

    def __init__(self, module: nn.Module, device: torch.device) -> None:
        self.awake = False
        self._device = device
        # A tied weight is one object in two places.
        self._tensors = list({id(t): t for t in (*module.parameters(), *module.buffers())}.values())
        self._host: list[torch.Tensor] = []

    def wake(self) -> None:
        """Have the weights on the device."""
        if self.awake:
            return
        source = self._host or self._tensors
        self._put(tensor.to(self._device, non_blocking=True) for tensor in source)
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        self.awake = True

    def rest(self) -> None:
        """Have the weights on the host alone."""
        if not self.awake or self._device.type == "cpu":
            return
        if not self._host:
            self._host = [_on_host(tensor) for tensor in self._tensors]
        self._put(self._host)
        self.awake = False

    def _put(self, places: Iterable[torch.Tensor]) -> None:
        for tensor, place in zip(self._tensors, places, strict=True):
            moved = place.detach()
            if isinstance(tensor, nn.Parameter):
                moved = nn.Parameter(moved, requires_grad=False)
            torch.utils.swap_tensors(tensor, moved)


def _on_host(tensor: torch.Tensor) -> torch.Tensor:
    copy = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=torch.cuda.is_available())
    return copy.copy_(tensor)
