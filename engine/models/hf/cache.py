"""A transformers cache whose tokens lie in numbered cells instead of one after another."""

from __future__ import annotations

import torch
from transformers.cache_utils import Cache, CacheLayerMixin

from engine.models.base import Interrupted
from engine.models.stop import StopSignal


class TreeCache(Cache):
    """Keys and values of all layers; `aim` says where the next batch reads and writes.

    Args:
        layers: number of the model's layers.
        capacity: cells of each.
    """

    def __init__(self, layers: int, capacity: int, stop: StopSignal) -> None:
        self.stop = stop
        self.new = torch.empty(0, dtype=torch.long)
        self.visible = torch.empty(0, dtype=torch.long)
        super().__init__(layers=[_Layer(self, capacity) for _ in range(layers)])

    def aim(self, new: torch.Tensor, visible: torch.Tensor) -> None:
        """The cells that the next batch fills and those that it sees, in the model's order."""
        self.new = new
        self.visible = visible

    @property
    def nbytes(self) -> int:
        """Bytes of all layers, once they are allocated."""
        return sum(layer.nbytes for layer in self.layers)

    def copy_out(self, cells: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """What some cells hold, layer by layer, in the host's memory."""
        return [layer.copy_out(cells) for layer in self.layers]

    def copy_in(
        self, cells: torch.Tensor, content: list[tuple[torch.Tensor, torch.Tensor]]
    ) -> None:
        """Put back what was copied out, into these cells."""
        for layer, (keys, values) in zip(self.layers, content, strict=True):
            layer.copy_in(cells, keys, values)

    def move(self, device: torch.device) -> None:
        """Have all layers' cells in another memory."""
        for layer in self.layers:
            layer.move(device)


class _Layer(CacheLayerMixin):
    is_sliding = False

    def __init__(self, owner: TreeCache, capacity: int) -> None:
        super().__init__()
        self._owner = owner
        self._capacity = capacity

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Allocate all cells, in the shape that the model's first keys and values have."""
        self.keys = _cells(key_states, self._capacity)
        self.values = _cells(value_states, self._capacity)
        self.is_initialized = True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: object, **kwargs: object
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Store a batch's keys and values, (1, heads, rows, width), and give all that it sees.

        Every layer of a model comes here once in a pass, so a stop takes effect between layers.
        """
        if self._owner.stop.is_set:
            raise Interrupted
        self._owner.stop.beat()
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        assert self.keys is not None
        assert self.values is not None
        self.keys.index_copy_(1, self._owner.new, key_states[0])
        self.values.index_copy_(1, self._owner.new, value_states[0])
        visible = self._owner.visible
        return (
            self.keys.index_select(1, visible)[None],
            self.values.index_select(1, visible)[None],
        )

    @property
    def nbytes(self) -> int:
        if self.keys is None or self.values is None:
            return 0
        return self.keys.nbytes + self.values.nbytes

    def move(self, device: torch.device) -> None:
        if self.keys is not None and self.values is not None:
            self.keys, self.values = self.keys.to(device), self.values.to(device)

    def copy_out(self, cells: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        assert self.keys is not None
        assert self.values is not None
        places = cells.to(self.keys.device)
        return (
            self.keys.index_select(1, places).cpu(),
            self.values.index_select(1, places).cpu(),
        )

    def copy_in(self, cells: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> None:
        assert self.keys is not None
        assert self.values is not None
        places = cells.to(self.keys.device)
        self.keys.index_copy_(1, places, keys.to(self.keys.device))
        self.values.index_copy_(1, places, values.to(self.values.device))

    def get_seq_length(self) -> int:
        return 0  # positions and masks are always given, so no model counts on this

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return len(self._owner.visible), 0

    def get_max_length(self) -> int:
        return self._capacity


def _cells(states: torch.Tensor, capacity: int) -> torch.Tensor:
    _, heads, _, width = states.shape
    return states.new_zeros((heads, capacity, width))
