"""Heads of process reward models: from a hidden state to a score, evaluated in numpy.

A head is recognised by the names and shapes of its tensors alone, in a whole checkpoint as well as
in a file of its own. Every layer has a bias: all published heads that score steps do, and without
it each score would be shifted with nothing to tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np

from engine.checkpoints.folder import Checkpoint, open_checkpoint, open_files
from engine.checkpoints.tensors import StoredTensor, missing_text, values
from engine.errors import EngineError
from engine.models.gguf import read_header
from engine.models.linear import linear
from engine.protocol.events import Trouble

DIGEST_KEY = "sapwood.prm.head"
"""Metadata of a body: the SHA-256 of the file with its head."""


@dataclass(frozen=True, slots=True)
class _Family:
    """How one family of models names its head."""

    name: str
    """Also of the format in `models.toml` that its models are read in, unless told otherwise."""
    layers: tuple[str, ...]
    """Names of the linear layers, first to last; ReLU stands between two."""
    outputs: int
    """1: the sigmoid of the output is the score. 2: the softmax's second share."""


_FAMILIES = (
    _Family("skywork", ("v_head.summary",), 1),
    _Family("qwen2.5-math-prm", ("score.0", "score.2"), 2),
    _Family("trl", ("score",), 2),
    _Family("reasonflux-1.5b", ("",), 1),
)


@dataclass(frozen=True, slots=True, eq=False)
class Head:
    """Linear layers with ReLU between them; sigmoid of one output, or softmax of two."""

    family: str
    """The format that such heads are commonly read in, by its name in `models.toml`."""
    layers: tuple[tuple[np.ndarray, np.ndarray], ...]
    """Weight (outputs, inputs) and bias (outputs,) of each, float32."""
    tensors: dict[str, np.ndarray]
    """The same by their names in the checkpoint."""

    @property
    def width(self) -> int:
        """Values of the hidden state it reads."""
        return self.layers[0][0].shape[1]

    def check_width(self, width: int, place: str) -> None:
        """Refuse to be the head of a model with hidden states of another width.

        Raises:
            EngineError: they have another one.
        """
        if self.width != width:
            raise EngineError(
                Trouble.MODEL,
                f"The head in {place} belongs to another model: it reads hidden states of "
                f"{self.width:,} values, and this model's have {width:,}.",
                "Take the head from the checkpoint that the model file was made from.",
            )

    def __call__(self, hidden: np.ndarray) -> np.ndarray:
        """Scores from 0 to 1, shape (rows,), of hidden states of shape (rows, width)."""
        last = len(self.layers) - 1
        for index, (weight, bias) in enumerate(self.layers):
            hidden = linear(hidden, weight) + bias
            if index < last:
                hidden = np.maximum(hidden, 0)
        logits = hidden.astype(np.float64)
        margin = logits[:, 0] if logits.shape[1] == 1 else logits[:, 1] - logits[:, 0]
        return 1.0 / (1.0 + np.exp(np.clip(-margin, -700, 700)))


def head_tensors(names: Mapping[str, object]) -> set[str]:
    """Of the names in a checkpoint, those of its head, whole or not; none without a known one."""
    found = _family(names)
    return set() if found is None else {name for name in _all_names(found) if name in names}


def find_head(tensors: Mapping[str, StoredTensor], place: str) -> Head:
    """The head among the tensors of a checkpoint or a head's own file.

    Args:
        place: what the tensors are of, for messages.

    Raises:
        EngineError: there is no head of a known family, it lacks a tensor, its shapes do not fit
            together, or it holds values that are no numbers.
    """
    family = _family(tensors)
    if family is None:
        raise EngineError(
            Trouble.MODEL,
            f"{place} has no head that scores steps: none of its tensors is called "
            f"{', '.join(f'{f.layers[0]}.weight' for f in _FAMILIES[:3])}.",
            "Take the checkpoint of a process reward model, not of the model it was made from.",
        )
    if lost := [name for name in _all_names(family) if name not in tensors]:
        raise EngineError(
            Trouble.MODEL,
            f"The head in {place} is not whole: {missing_text(lost)}.",
            "Download the checkpoint again. Where it never had more, it is not of a model that "
            "scores steps.",
        )
    layers: list[tuple[np.ndarray, np.ndarray]] = []
    read: dict[str, np.ndarray] = {}
    inputs: int | None = None
    for index, name in enumerate(family.layers):
        outputs = family.outputs if index == len(family.layers) - 1 else None
        weight_name, bias_name = _names(name)
        weight = _weight(tensors[weight_name], inputs, outputs, place)
        read[weight_name] = weight
        bias = read[bias_name] = _checked(tensors[bias_name], (len(weight),), place)
        layers.append((weight, bias))
        inputs = len(weight)
    return Head(family.name, tuple(layers), read)


def head_beside(body: Path) -> Path:
    """Where the head of a model file is looked for."""
    return body.with_suffix(".head.safetensors")


def head_in(checkpoint: Checkpoint) -> Head | None:
    """The head of a checkpoint, in its own file or among the other tensors.

    Raises:
        EngineError: it is damaged.
    """
    if checkpoint.head_file is not None:
        return find_head(open_files([checkpoint.head_file]), checkpoint.head_file.name)
    if head_tensors(checkpoint.tensors):
        return find_head(checkpoint.tensors, checkpoint.folder.name)
    return None


def head_of(body: Path) -> Head:
    """The head that belongs to a model: beside its file, or in its checkpoint's folder.

    Raises:
        EngineError: there is none, or it is another model's.
    """
    if body.is_dir():
        return _head_of_folder(body)
    header = read_header(body)
    path = head_beside(body)
    if not path.is_file():
        raise EngineError(
            Trouble.MODEL,
            f"{body.name} is the body of a verifier without its head: there is no {path.name} "
            "beside it.",
            "Put it there, or convert the checkpoint again with: sapwood models convert",
        )
    digest = header.text(DIGEST_KEY)
    if digest and digest != sha256(path.read_bytes()).hexdigest():
        raise EngineError(
            Trouble.MODEL,
            f"{path.name} is not the head that {body.name} was made with.",
            "Convert the checkpoint again with: sapwood models convert",
        )
    width = header.number(f"{header.text('general.architecture')}.embedding_length")
    return read_head(path, width)


def read_head(path: Path, width: int) -> Head:
    """The head in a file of its own, or in the file of a checkpoint that it is in.

    Args:
        width: values of a hidden state of the model that it is to read.

    Raises:
        EngineError: the file cannot be used, has no known head, or has one for another model.
    """
    head = find_head(open_files([path]), path.name)
    head.check_width(width, path.name)
    return head


def _head_of_folder(folder: Path) -> Head:
    checkpoint = open_checkpoint(folder)
    head = head_in(checkpoint)
    if head is None:
        raise EngineError(
            Trouble.MODEL,
            f"{folder.name} has no head that scores steps.",
            "Take the checkpoint of the process reward model, not of the model it was made from.",
        )
    width = checkpoint.config.get("hidden_size")
    head.check_width(width if isinstance(width, int) else 0, folder.name)
    return head


def _family(names: Mapping[str, object]) -> _Family | None:
    for family in _FAMILIES:
        if any(name in names for name in _all_names(family)):
            return family
    return None


def _all_names(family: _Family) -> list[str]:
    return [name for layer in family.layers for name in _names(layer)]


def _names(layer: str) -> tuple[str, str]:
    dot = f"{layer}." if layer else ""
    return f"{dot}weight", f"{dot}bias"


def _weight(
    tensor: StoredTensor, inputs: int | None, outputs: int | None, place: str
) -> np.ndarray:
    shape = tensor.shape
    if len(shape) != 2 or (outputs is not None and shape[0] != outputs):
        raise _misshapen(tensor, f"({outputs or 'any'}, {inputs or 'width'})", place)
    return _checked(tensor, (shape[0], inputs or shape[1]), place)


def _checked(tensor: StoredTensor, shape: tuple[int, ...], place: str) -> np.ndarray:
    if tensor.shape != shape or 0 in shape:
        raise _misshapen(tensor, str(shape), place)
    found = values(tensor)
    if not np.isfinite(found).all():
        raise EngineError(
            Trouble.MODEL,
            f"The head in {place} is damaged: {tensor.name} holds values that are no numbers.",
            "Download it again.",
        )
    return found


def _misshapen(tensor: StoredTensor, wanted: str, place: str) -> EngineError:
    return EngineError(
        Trouble.MODEL,
        f"The head in {place} is of no kind that Sapwood knows: {tensor.name} has the shape "
        f"{tensor.shape}, not {wanted}.",
        "Choose another process reward model.",
    )
