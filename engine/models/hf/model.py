"""Token model on transformers: one flat KV cache used as a tree.

A path is a list of cells; a fork copies the list. The new tokens of all spans are computed as one
sequence whose attention mask lets each token see its own path and nothing else, so a shared prefix
is stored and computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from engine.errors import EngineError
from engine.models.base import Interrupted, Span
from engine.models.hf.cache import TreeCache
from engine.models.hf.cells import Layout, PathCells, lay_out
from engine.models.hf.weights import HfWeights
from engine.models.pieces import pieces
from engine.models.stop import StopSignal
from engine.protocol.events import Trouble


@dataclass(frozen=True, slots=True)
class SavedCells:
    """The end of a path in the host's memory."""

    length: int
    content: list[tuple[torch.Tensor, torch.Tensor]]
    """Keys and values, layer by layer."""

    @property
    def bytes(self) -> int:
        return sum(keys.nbytes + values.nbytes for keys, values in self.content)


class HfModel:
    """A KV cache of `capacity` cells on some weights; implements `TokenModel`.

    It can be put to sleep, which frees its device's memory: what was there waits on the host.

    Args:
        paths: how many there may be at once.
        batch: tokens one pass may take.
        all_layers: `read` gives the states of all layers.
    """

    def __init__(
        self,
        weights: HfWeights,
        *,
        capacity: int,
        paths: int,
        stop: StopSignal,
        batch: int = 512,
        all_layers: bool = False,
    ) -> None:
        self.name = weights.name
        self.vocabulary = weights.vocabulary
        self.trained_context = weights.trained_context
        self.capacity = capacity
        self.max_paths = paths
        self._weights = weights
        self.width = weights.width
        self.depth = int(weights.config.num_hidden_layers)
        self.layers = self.depth if all_layers else 1
        self._batch = batch
        self._cells = PathCells(capacity)
        self._cache = self._new_cache(stop)
        self._awake = True

    def watch(self, stop: StopSignal) -> None:
        """Give up computing when `stop` is set, from now on."""
        self._cache.stop = stop

    @property
    def used(self) -> int:
        return self._cells.used

    def length(self, path: int) -> int:
        return self._cells.length(path)

    def fork(self, source: int, target: int) -> None:
        self._cells.fork(source, target)

    def drop(self, path: int) -> None:
        self._cells.shorten(path, 0)

    def save(self, path: int, start: int) -> SavedCells:
        cells = torch.from_numpy(self._cells.of(path)[start:])
        return SavedCells(len(cells), self._cache.copy_out(cells))

    def restore(self, path: int, saved: SavedCells) -> None:
        start = self.length(path)
        self._cells.append((path,), saved.length)
        with torch.inference_mode():
            self._cache.copy_in(torch.from_numpy(self._cells.of(path)[start:]), saved.content)

    def reset(self) -> None:
        self._cells = PathCells(self.capacity)

    def forward(self, spans: Sequence[Span], columns: Sequence[int] | None = None) -> np.ndarray:
        if not self._weights.has_logits:
            raise EngineError(
                Trouble.MODEL,
                f"{self.name} has no output matrix: it cannot write or predict tokens.",
                "Choose a generator, or name this model with --verifier.",
            )
        width = self.vocabulary.size if columns is None else len(columns)
        wanted = slice(None) if columns is None else list(columns)
        return self._each(spans, lambda inputs, rows: self._logits(inputs, rows)[:, wanted], width)

    def hidden(self, spans: Sequence[Span]) -> np.ndarray:
        return self._each(spans, self._hidden, self._weights.width)

    def read(self, spans: Sequence[Span]) -> tuple[np.ndarray, np.ndarray]:
        whole = [Span(span.paths, span.tokens, range(len(span.tokens))) for span in spans]
        owners = np.repeat(np.arange(len(spans)), [len(span.tokens) for span in spans])
        wanted = np.zeros(len(owners), bool)
        start = 0
        for span in spans:
            places = [i if i >= 0 else len(span.tokens) + i for i in span.wanted]
            wanted[start + np.array(places, np.int64)] = True
            start += len(span.tokens)
        size = self.vocabulary.size
        rows = self._each(whole, self._inside, size + self.layers * self.width)
        sums = np.zeros((len(spans), self.layers, self.width), np.float32)
        np.add.at(sums, owners, rows[:, size:].reshape(-1, self.layers, self.width))
        return rows[wanted, :size], sums

    def shorten(self, path: int, length: int) -> None:
        self._cells.shorten(path, length)

    def touch(self) -> None:
        """Compute a batch, so that what it will take is taken now."""
        count = min(self.capacity, self._batch)
        span = Span((0,), [0] * count)
        if self._weights.has_logits:
            self.forward([span])
        else:
            self.hidden([span])
        self.reset()

    @property
    def awake(self) -> bool:
        return self._awake

    @property
    def saved_bytes(self) -> int:
        """Bytes on the host that hold the cache while asleep."""
        return 0 if self._awake else self._cache.nbytes

    def sleep(self, *, weights: bool, save: bool) -> None:
        """Free the cache's memory on the device, and that of the weights if `weights`.

        Args:
            save: makes no difference; what is in the cache is always kept.
        """
        if not self.used:
            self._cache = self._new_cache(self._cache.stop)
        self._cache.move(torch.device("cpu"))
        if weights:
            self._weights.unload()
        self._awake = False

    def wake(self) -> None:
        """Be as before `sleep`.

        Raises:
            Interrupted: the stop signal was set meanwhile; the model sleeps on.
            EngineError: there is no memory for it.
        """
        self._weights.load(lambda done: not self._cache.stop.is_set)
        self._cache.move(self._weights.device)
        self._awake = True

    def close(self) -> None:
        """Give the cache's memory back."""
        self._cache = TreeCache(0, 0, self._cache.stop)

    def _new_cache(self, stop: StopSignal) -> TreeCache:
        return TreeCache(self._weights.config.num_hidden_layers, self.capacity, stop)

    def _each(
        self,
        spans: Sequence[Span],
        compute: Callable[[dict[str, Any], torch.Tensor], torch.Tensor],
        width: int,
    ) -> np.ndarray:
        """What `compute` gives of the wanted rows, for one piece of the spans after another."""
        parts = [np.empty((0, width), np.float32)]
        for piece in pieces(spans, self._batch, self._batch):
            lengths = {path: self.length(path) for span in piece for path in span.paths}
            try:
                with torch.inference_mode():
                    rows = compute(*self._inputs(piece))
                    parts.append(rows.float().cpu().numpy())
            except BaseException as error:
                for path, length in lengths.items():  # their new cells hold nothing
                    self._cells.shorten(path, length)
                raise _told(error, self.name) from None
            if not np.isfinite(parts[-1]).all():
                raise EngineError(
                    Trouble.MODEL,
                    f"{self.name} computes no numbers: its files are damaged, or its values are "
                    "too large for the precision they are computed in.",
                    "Download it again, or choose another model.",
                )
        return np.concatenate(parts)

    def _inputs(self, spans: Sequence[Span]) -> tuple[dict[str, Any], torch.Tensor]:
        """What the model is called with for spans that are one batch, and the rows wanted of it."""
        layout = lay_out(self._cells, spans)
        device = self._weights.device
        self._cache.aim(
            torch.from_numpy(layout.new).to(device), torch.from_numpy(layout.visible).to(device)
        )
        tokens = [token for span in spans for token in span.tokens]
        wanted: list[int] = []
        start = 0
        for span in spans:
            wanted += [start + index for index in span.wanted]
            start += len(span.tokens)
        inputs = {
            "input_ids": torch.tensor([tokens], device=device),
            "position_ids": torch.from_numpy(layout.positions).to(device)[None],
            "attention_mask": self._masks(layout),
            "cache": self._cache,
            "use_cache": True,
        }
        return inputs, torch.tensor(wanted, dtype=torch.long, device=device)

    def _masks(self, layout: Layout) -> torch.Tensor | dict[str, torch.Tensor]:
        """Additive masks, (1, 1, rows, columns): one, or one for each kind of layer."""
        config = self._weights.config
        window = getattr(config, "sliding_window", None)
        kinds: set[str] = set(getattr(config, "layer_types", None) or ())
        if not kinds:  # every layer is of one kind, and a window is always in use
            return self._mask(_within(layout, window))
        masks = {
            kind: self._mask(_within(layout, window if kind == "sliding_attention" else None))
            for kind in kinds
        }
        return masks if len(masks) > 1 else masks.popitem()[1]

    def _mask(self, sees: np.ndarray) -> torch.Tensor:
        dtype = self._weights.model.dtype
        mask = torch.full(sees.shape, torch.finfo(dtype).min, dtype=dtype)
        mask.masked_fill_(torch.from_numpy(sees), 0.0)
        return mask.to(self._weights.device)[None, None]

    def _logits(self, inputs: dict[str, Any], rows: torch.Tensor) -> torch.Tensor:
        return self._weights.model(**inputs, logits_to_keep=rows).logits[0]

    def _inside(self, inputs: dict[str, Any], rows: torch.Tensor) -> torch.Tensor:
        """Logits, and the states after each layer, of every row."""
        found = self._weights.model(**inputs, output_hidden_states=True)
        states = found.hidden_states[-self.layers :]
        return torch.cat([found.logits[0], *(state[0] for state in states)], dim=-1)

    def _hidden(self, inputs: dict[str, Any], rows: torch.Tensor) -> torch.Tensor:
        body = self._weights.model.base_model
        return body(**inputs).last_hidden_state[0].index_select(0, rows)


def _within(layout: Layout, window: int | None) -> np.ndarray:
    return layout.sees & (layout.distances < window) if window else layout.sees


def _told(error: BaseException, name: str) -> BaseException:
    """The error as the rest of the engine knows it."""
    if isinstance(error, torch.OutOfMemoryError):
        return EngineError(
            Trouble.MEMORY,
            f"The device has no memory left to compute {name}.",
            "Use a smaller --n or --context, or a smaller model.",
        )
    if isinstance(error, RuntimeError) and not isinstance(error, Interrupted):
        reason = str(error).partition("\n")[0]
        return EngineError(Trouble.ENGINE, f"torch failed to compute a batch of {name}: {reason}.")
    return error
