"""Predictors: from a step's feature to the probability that a model says the same thing.

Three linear layers with ReLU between them and a sigmoid at the end, evaluated in numpy. The paper's
hidden layers have 2048 and 512 values for a target of width 5120, 512 and 256 for a draft of width
1536; for other models they are these shares of the model's width: 0.4 and 0.1, 1/3 and 1/6.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import file_digest
from itertools import pairwise
from pathlib import Path
from typing import Literal, cast

import numpy as np

from engine.checkpoints.safetensors import SafetensorsFile, open_safetensors, write_safetensors
from engine.checkpoints.tensors import values
from engine.errors import EngineError
from engine.models.linear import linear
from engine.protocol.events import Trouble
from engine.semantic.features import FEATURES, Feature, size

Role = Literal["draft", "target"]
VERSION = "1"
_KEY = "sapwood.probe."
_SHARES: dict[Role, tuple[float, float]] = {"target": (0.4, 0.1), "draft": (1 / 3, 1 / 6)}
_AGAIN = "Train a pair for these models with: sapwood probe train"


def shape(role: Role, inputs: int, width: int) -> tuple[int, int, int, int]:
    """Inputs and outputs of the layers, for a model with states of `width` values."""
    first, second = (max(1, round(share * width)) for share in _SHARES[role])
    return inputs, first, second, 1


@dataclass(frozen=True, slots=True)
class Subject:
    """The model that a predictor is about."""

    digest: str
    """SHA-256 of its file."""
    name: str
    layers: int
    width: int


@dataclass(frozen=True, slots=True, eq=False)
class Predictor:
    """A predictor of one model."""

    role: Role
    feature: Feature
    layers: tuple[tuple[np.ndarray, np.ndarray], ...]
    """Weight (outputs, inputs) and bias (outputs,) of each, float32."""
    seed: int = 0
    """Decided on the problems that it learnt from."""

    def __call__(self, inputs: np.ndarray) -> np.ndarray:
        """Probabilities, shape (rows,), for features of shape (rows, size)."""
        for index, (weight, bias) in enumerate(self.layers):
            inputs = linear(inputs, weight) + bias
            if index < len(self.layers) - 1:
                inputs = np.maximum(inputs, 0)
        return 1.0 / (1.0 + np.exp(np.clip(-inputs[:, 0].astype(np.float64), -700, 700)))


def digest_of(model: Path) -> str:
    """SHA-256 of a model's file; of those of its weights, in order, where it is a folder."""
    if model.is_dir():
        files = sorted(model.glob("*.safetensors"))
        return "+".join(digest_of(file) for file in files)
    with model.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def save(path: Path, predictor: Predictor, subject: Subject) -> None:
    """Write a predictor, tied to its model.

    Raises:
        OSError: the file cannot be written.
    """
    tensors: dict[str, np.ndarray] = {}
    for index, (weight, bias) in enumerate(predictor.layers, 1):
        tensors[f"fc{index}.weight"], tensors[f"fc{index}.bias"] = weight, bias
    about = {
        "version": VERSION,
        "role": predictor.role,
        "feature": predictor.feature,
        "model": subject.digest,
        "name": subject.name,
        "layers": str(subject.layers),
        "width": str(subject.width),
        "seed": str(predictor.seed),
    }
    write_safetensors(path, tensors, {_KEY + name: value for name, value in about.items()})


def feature_in(path: Path) -> Feature:
    """What the predictor in a file reads.

    Raises:
        EngineError: it is missing or damaged.
    """
    return _feature(_stored(path).metadata, path)


def _stored(path: Path) -> SafetensorsFile:
    if not path.exists():
        raise EngineError(Trouble.USAGE, f"There is no predictor {path}.", _AGAIN)
    try:
        return open_safetensors(path)
    except EngineError as error:  # it is not a download that is broken
        raise EngineError(error.trouble, error.message, _AGAIN) from None


def load(path: Path, role: Role, subject: Subject) -> Predictor:
    """Read the predictor of a model.

    Raises:
        EngineError: it is missing or damaged, or another model's.
    """
    stored = _stored(path)
    about = {
        key.removeprefix(_KEY): value
        for key, value in stored.metadata.items()
        if key.startswith(_KEY)
    }
    kind = _feature(stored.metadata, path)
    if about.get("role") != role:
        raise EngineError(
            Trouble.MODEL,
            f"{path.name} is the predictor of a {about.get('role')}, not of a {role}.",
            "Name the folder that holds draft.safetensors and target.safetensors as trained.",
        )
    if about.get("width") != str(subject.width) or about.get("layers") != str(subject.layers):
        raise EngineError(
            Trouble.MODEL,
            f"{path.name} reads {about.get('layers')} layers of {about.get('width')} values, and "
            f"{subject.name} has {subject.layers} of {subject.width}: it belongs to another model.",
            _AGAIN,
        )
    if about.get("model") != subject.digest:
        raise EngineError(
            Trouble.MODEL,
            f"{path.name} was trained on {about.get('name')}, not on the file of {subject.name} "
            "that is used now: what it would predict means nothing.",
            _AGAIN,
        )
    sizes = shape(role, size(kind, subject.layers, subject.width), subject.width)
    layers: list[tuple[np.ndarray, np.ndarray]] = []
    for index, (inputs, outputs) in enumerate(pairwise(sizes), 1):
        pair: list[np.ndarray] = []
        for name, wanted in (
            (f"fc{index}.weight", (outputs, inputs)),
            (f"fc{index}.bias", (outputs,)),
        ):
            tensor = stored.tensors.get(name)
            if tensor is None or tensor.shape != wanted:
                found = "is missing" if tensor is None else f"has the shape {tensor.shape}"
                raise EngineError(
                    Trouble.MODEL,
                    f"{path.name} is damaged: {name} {found}, and should have {wanted}.",
                    _AGAIN,
                )
            array = values(tensor)
            if not np.isfinite(array).all():
                raise EngineError(
                    Trouble.MODEL,
                    f"{path.name} is damaged: {name} holds values that are no numbers.",
                    _AGAIN,
                )
            pair.append(array)
        layers.append((pair[0], pair[1]))
    seed = about.get("seed", "0")
    if not seed.isdecimal():
        raise EngineError(Trouble.MODEL, f"{path.name} is damaged: its seed is no number.", _AGAIN)
    return Predictor(role, kind, tuple(layers), int(seed))


def _feature(metadata: Mapping[str, str], path: Path) -> Feature:
    kind = metadata.get(f"{_KEY}feature")
    if metadata.get(f"{_KEY}version") != VERSION or kind not in FEATURES:
        raise EngineError(
            Trouble.MODEL,
            f"{path.name} is no predictor that this version of Sapwood knows.",
            _AGAIN,
        )
    return cast(Feature, kind)
