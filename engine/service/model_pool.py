"""The models a worker holds: weights kept between runs, caches sized to each request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil

from engine.models.chat import ChatTemplate
from engine.models.gguf import Header, read_header
from engine.models.llama import LlamaModel, LlamaWeights
from engine.models.stop import StopSignal

Role = Literal["generator", "verifier"]

_CACHE_SHARE = 0.25
"""Part of the free memory that one model's cache may take."""
_FULL_PATHS = 16
"""Paths of full length that a cache is sized for; with more, some may have to wait."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What a run needs of a cache."""

    context: int
    """Tokens of the longest path."""
    paths: int
    """Paths in flight."""
    outputs: int
    """Positions of one batch whose logits are read."""


@dataclass(slots=True)
class _Held:
    path: Path
    weights: LlamaWeights
    template: ChatTemplate
    shape: Shape | None = None
    model: LlamaModel | None = None


class ModelPool:
    """One model a role; another file replaces the one that played it."""

    def __init__(self) -> None:
        self._held: dict[Role, _Held] = {}

    def get(
        self,
        role: Role,
        path: Path,
        shape: Shape,
        stop: StopSignal,
        loading: Callable[[Header, float], None],
    ) -> tuple[LlamaModel, ChatTemplate]:
        """A model with an empty cache.

        Args:
            loading: told of the file's header and of the part of its weights that is read.

        Raises:
            Interrupted: `stop` was set while loading.
            EngineError: the file cannot be used, or there is no memory for it.
        """
        held = self._held.get(role)
        if held is None or held.path != path:
            self._drop(role)
            header = read_header(path)

            def progress(done: float) -> bool:
                loading(header, done)
                return not stop.is_set

            held = self._held[role] = _load(path, header, progress)
        else:
            loading(held.weights.header, 1.0)
        if held.model is None or held.shape != shape:
            if held.model is not None:
                held.model.close()
                held.model = None
            held.model = _open(held.weights, shape, stop)
            held.shape = shape
        held.model.reset()
        held.model.watch(stop)
        return held.model, held.template

    def close(self) -> None:
        """Give all memory back."""
        for role in list(self._held):
            self._drop(role)

    def _drop(self, role: Role) -> None:
        held = self._held.pop(role, None)
        if held is not None:
            if held.model is not None:
                held.model.close()
            held.weights.close()


def _load(path: Path, header: Header, progress: Callable[[float], bool]) -> _Held:
    weights = LlamaWeights(path, header, progress)
    template = ChatTemplate(
        header.text("tokenizer.chat_template"),
        bos=weights.vocabulary.bos.decode(errors="replace"),
        eos=weights.vocabulary.eos.decode(errors="replace"),
    )
    return _Held(path, weights, template)


def _open(weights: LlamaWeights, shape: Shape, stop: StopSignal) -> LlamaModel:
    context = min(shape.context, weights.trained_context)
    affordable = int(psutil.virtual_memory().available * _CACHE_SHARE) // weights.cell_bytes
    wanted = min(context * min(shape.paths, _FULL_PATHS), affordable)
    return LlamaModel(
        weights,
        capacity=max(wanted // 256 * 256, 256),
        paths=2 * shape.paths + 2,  # each path that is written, and as many to fork from
        outputs=shape.outputs,
        stop=stop,
    )
