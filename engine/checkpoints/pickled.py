"""Pickled checkpoints, through torch's reader that builds tensors and nothing else.

A pickle is a program. Only with `weights_only` does torch refuse to run one, so no other way of
reading is ever tried.
"""

from __future__ import annotations

import importlib
import pickle
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from engine.errors import EngineError
from engine.protocol.events import Trouble


@dataclass(frozen=True, slots=True)
class PickledTensor:
    """Implements `StoredTensor` on a torch tensor, whose storage is the mapped file."""

    name: str
    shape: tuple[int, ...]
    data: Any
    """A torch tensor."""
    file: str
    """Name of the file, for messages."""

    def rows(self, start: int, stop: int) -> np.ndarray:
        data = self.data
        plain = data.device.type == "cpu" and str(data.layout) == "torch.strided"
        if not plain or data.is_quantized or not data.is_floating_point():
            kind = data.dtype if plain else f"{data.device.type}, {data.layout}"
            raise EngineError(
                Trouble.MODEL,
                f"The tensor {self.name} of {self.file} is of type {kind}, which holds no plain "
                "weights.",
                "Take a checkpoint in 16 or 32 bit floats.",
            )
        part = self.data.detach() if self.data.ndim else self.data.detach().reshape(1)
        return part[start:stop].float().numpy().copy()


def open_pickle(path: Path) -> dict[str, PickledTensor]:
    """The tensors of a pickled state dictionary.

    Raises:
        EngineError: torch is not installed, or the file is missing, damaged, or holds anything
            but tensors.
    """
    try:
        torch: Any = importlib.import_module("torch")
    except ImportError:
        raise EngineError(
            Trouble.MODEL,
            f"{path.name} is a pickle, and only torch reads one without running what is in it.",
            "Take the model's .safetensors files, or install torch with: pip install torch",
        ) from None
    try:
        found = _load(torch, path)
    except FileNotFoundError:
        raise EngineError(
            Trouble.MODEL, f"There is no file {path}.", "Download the checkpoint in full."
        ) from None
    except pickle.UnpicklingError as error:
        damaged = "it is damaged, or " if "operand" in str(error) else ""
        raise EngineError(
            Trouble.MODEL,
            f"{path.name} is refused: {damaged}it holds code or objects, not only weights. "
            "Nothing of it was run.",
            "Get the model from its maker, as .safetensors if there are any.",
        ) from None
    except Exception as error:  # damaged files fail in every way there is
        reason = str(error).partition("\n")[0].rstrip(".") or type(error).__name__
        raise EngineError(
            Trouble.MODEL, f"{path.name} is cut short or damaged: {reason}.", "Download it again."
        ) from None
    if not isinstance(found, dict) or not all(isinstance(t, torch.Tensor) for t in found.values()):
        raise EngineError(Trouble.MODEL, f"{path.name} holds no dictionary of tensors.")
    return {
        str(name): PickledTensor(str(name), tuple(tensor.shape), tensor, path.name)
        for name, tensor in found.items()
    }


def _load(torch: Any, path: Path) -> Any:
    with path.open("rb") as file:
        zipped = file.read(4) == b"PK\x03\x04"  # torch maps only its newer format
    with warnings.catch_warnings(action="ignore"):  # it doubts what it goes on to refuse
        return torch.load(path, map_location="cpu", weights_only=True, mmap=zipped)
