"""A model and its template, opened by itself to be sampled from and read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from engine.errors import EngineError
from engine.models.base import StatesModel, Vocabulary
from engine.models.chat import ChatTemplate
from engine.models.folder import load_folder, open_folder
from engine.models.llama import LlamaModel, LlamaWeights
from engine.models.llama_vocabulary import vocabulary_of
from engine.models.stop import StopSignal
from engine.protocol.events import Trouble
from engine.semantic.other_tokens import other_tokens
from engine.semantic.predictors import Subject, digest_of

_OUTPUTS = 64


@dataclass(frozen=True, slots=True)
class OpenModel:
    model: StatesModel
    template: ChatTemplate
    subject: Subject


@contextmanager
def opened(path: Path, *, capacity: int, paths: int) -> Iterator[OpenModel]:
    """A model that gives the states of all its layers.

    Raises:
        EngineError: it cannot be loaded.
    """
    stop = StopSignal()
    model: StatesModel
    if path.is_dir():
        checkpoint = load_folder(path, lambda done: True)
        weights = checkpoint
        model = open_folder(checkpoint, capacity=capacity, paths=paths, stop=stop, all_layers=True)
    else:
        weights = LlamaWeights(path)
        model = LlamaModel(
            weights,
            capacity=capacity,
            paths=paths,
            outputs=max(_OUTPUTS, paths),
            stop=stop,
            all_layers=True,
        )
    try:
        subject = Subject(digest_of(path), model.name, model.depth, model.width)
        yield OpenModel(model, weights.template, subject)
    finally:
        model.close()
        weights.close()


def check_two_models(draft: Path, target: Path) -> None:
    """Refuse a model that would draft for itself.

    Raises:
        EngineError: it would.
    """
    if draft == target:
        raise EngineError(
            Trouble.USAGE,
            "The draft model is the generator itself: it would write everything twice.",
            "Choose a smaller model of the same family with --draft.",
        )


def check_same_files(draft: Path, target: Path) -> None:
    """The same of two files, whose weights are left alone; checkpoints in folders pass.

    Raises:
        EngineError: their tokens differ, or a file cannot be read.
    """
    if draft.is_dir() or target.is_dir():
        return  # a tokenizer's files do not tell how many rows the model has for its tokens
    with vocabulary_of(draft) as small, vocabulary_of(target) as large:
        check_same_vocabulary(small, large)


def check_same_vocabulary(draft: Vocabulary, target: Vocabulary) -> None:
    """Refuse a draft model whose tokens are not the target's.

    Raises:
        EngineError: they are not.
    """
    same = draft.size == target.size and all(
        draft.piece(token) == target.piece(token) for token in range(target.size)
    )
    if not same:
        raise other_tokens(draft.size, target.size)
