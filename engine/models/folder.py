"""Checkpoints of the model hub: a folder with config.json stands where a GGUF file could.

They run on torch and transformers, which are imported only once such a folder is loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from engine.errors import EngineError
from engine.models.gguf import Header, read_header
from engine.models.stop import StopSignal
from engine.protocol.events import Trouble

if TYPE_CHECKING:
    from engine.models.hf.model import HfModel
    from engine.models.hf.weights import HfWeights


class _Config(msgspec.Struct):
    model_type: str


def model_header(path: Path) -> Header:
    """The header of a model's file, or what a checkpoint's folder says in the same words.

    Raises:
        EngineError: it is neither, or damaged.
    """
    if not path.is_dir():
        return read_header(path)
    try:
        config = msgspec.json.decode((path / "config.json").read_bytes(), type=_Config)
    except OSError:
        raise EngineError(
            Trouble.MODEL,
            f"{path} is a folder without a config.json, so it is no model.",
            "Name a .gguf file, or the folder with all the files of a model's repository.",
        ) from None
    except msgspec.DecodeError as error:
        raise EngineError(
            Trouble.MODEL, f"{path / 'config.json'} is damaged: {error}.", "Download it again."
        ) from None
    names: dict[str, object] = {
        "general.name": path.resolve().name,
        "general.architecture": config.model_type,
    }
    return Header(names, (), 0)


def load_folder(
    path: Path, progress: Callable[[float], bool], device: str | None = None
) -> HfWeights:
    """The weights of a checkpoint.

    Args:
        device: where to compute; by default a GPU if torch has one.

    Raises:
        EngineError: torch or transformers is not installed, or the checkpoint cannot be used.
        Interrupted: `progress` stopped it.
    """
    try:
        from engine.models.hf.weights import HfWeights
    except ImportError as error:
        raise EngineError(
            Trouble.MODEL,
            f"{path.name} is a checkpoint of the model hub, and {error.name or 'torch'}, which "
            "runs those, is not installed.",
            "Install it with: pip install 'sapwood[torch]', or convert the model to GGUF with: "
            "sapwood models convert",
        ) from None
    return HfWeights(path, device=device, progress=progress)


def open_folder(
    weights: HfWeights, *, capacity: int, paths: int, stop: StopSignal, all_layers: bool = False
) -> HfModel:
    """A cache on a checkpoint's weights."""
    from engine.models.hf.model import HfModel

    return HfModel(weights, capacity=capacity, paths=paths, stop=stop, all_layers=all_layers)
