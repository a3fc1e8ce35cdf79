"""A checkpoint's weights in memory, with what is needed to run them as they are."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging

from engine.errors import EngineError
from engine.models.base import Interrupted
from engine.models.chat import ChatTemplate
from engine.models.hf.parking import Parking
from engine.models.hf.vocabulary import HfVocabulary
from engine.models.threads import default_threads
from engine.protocol.events import Trouble

_STRETCHED = ("dynamic", "longrope")
"""Ways to stretch RoPE that turn all keys anew once a text grows long."""


class HfWeights:
    """A folder of the model hub in memory; caches are opened on it.

    Code that a repository brings along is never run: an architecture that transformers does not
    have is refused.

    Args:
        folder: holds config.json, the weights, and the tokenizer's files.
        device: where to compute; by default a GPU if torch has one.
        dtype: what to compute in; by default float32 on a CPU, else what the checkpoint is in.
        threads: compute threads on a CPU; by default one core is left to the rest of the machine.
        progress: told of the part that is loaded, from 0 to 1; stops loading by answering False.

    Raises:
        EngineError: the checkpoint is damaged, not whole, or of a kind that cannot be forked.
        Interrupted: `progress` stopped it.
    """

    def __init__(
        self,
        folder: Path,
        *,
        device: str | None = None,
        dtype: torch.dtype | None = None,
        threads: int | None = None,
        progress: Callable[[float], bool] = lambda done: True,
    ) -> None:
        self.folder = folder
        self.name = folder.name
        self.device = torch.device(device or _best_device())
        torch.set_num_threads(threads or default_threads())
        self._dtype = dtype or (torch.float32 if self.device.type == "cpu" else "auto")
        config: Any = _told(folder, lambda: AutoConfig.from_pretrained(folder, **_LOCAL))
        _check(config, folder)
        self.has_logits = any("CausalLM" in name for name in config.architectures or ())
        self._model: Any = None
        self._parking: Parking | None = None
        self.load(progress)
        self.config: Any = self.model.config
        self.trained_context = _trained_context(self.config)
        self.width = int(self.config.hidden_size)
        """Values of a hidden state."""
        tokenizer: Any = _told(folder, lambda: AutoTokenizer.from_pretrained(folder, **_LOCAL))
        if not getattr(tokenizer, "is_fast", False):
            raise EngineError(
                Trouble.MODEL,
                f"The tokenizer of {self.name} is of a kind that Sapwood cannot use.",
                "Choose a model whose repository has a tokenizer.json.",
            )
        self.vocabulary = HfVocabulary(tokenizer, int(self.config.vocab_size), self._ends())
        self.template = _template(tokenizer)

    @property
    def model(self) -> Any:
        """The transformers model, while it is loaded."""
        assert self._model is not None
        return self._model

    @property
    def loaded(self) -> bool:
        """Whether the weights are on their device."""
        return self._parking is not None and self._parking.awake

    def load(self, progress: Callable[[float], bool] = lambda done: True) -> None:
        """Have the weights on their device.

        Raises:
            Interrupted: `progress` stopped it.
            EngineError: the checkpoint cannot be used, or there is no memory for it.
        """
        if self._parking is None:
            self._model = self._read(progress)
            self._parking = Parking(self._model, self.device)
        _told(self.folder, self._parking.wake)

    def unload(self) -> None:
        """Free the weights' memory on their device. Where that is the host, they are read again."""
        if self.device.type == "cpu":
            self._model = self._parking = None
        elif self._parking is not None:
            self._parking.rest()

    def _read(self, progress: Callable[[float], bool]) -> Any:
        kind: Any = AutoModelForCausalLM if self.has_logits else AutoModel
        with _LoadingBar(progress):
            model, about = _told(
                self.folder,
                lambda: kind.from_pretrained(
                    self.folder, dtype=self._dtype, output_loading_info=True, **_LOCAL
                ),
            )
        if lost := sorted(about["missing_keys"]):
            raise EngineError(
                Trouble.MODEL,
                f"The checkpoint {self.name} is not whole: {lost[0]} and {len(lost) - 1} more of "
                "its tensors are missing.",
                "Download all the files of the model's repository.",
            )
        return model.eval().requires_grad_(False)

    def _ends(self) -> set[int]:
        """Ids that end a generation, as the checkpoint's configurations say."""
        generation = getattr(self.model, "generation_config", None)
        told = (self.config.eos_token_id, getattr(generation, "eos_token_id", None))
        lists = (ids if isinstance(ids, list) else [ids] for ids in told)
        return {token for ids in lists for token in ids if token is not None}

    @property
    def cell_bytes(self) -> int:
        """Bytes of one KV cell."""
        heads = getattr(self.config, "num_key_value_heads", None)
        heads = heads or self.config.num_attention_heads
        width = getattr(self.config, "head_dim", None)
        width = width or self.config.hidden_size // self.config.num_attention_heads
        return 2 * self.config.num_hidden_layers * heads * width * self.model.dtype.itemsize

    def close(self) -> None:
        """Give the memory back."""
        self._model = self._parking = None
        if self.device.type == "cuda":
            torch.cuda.empty_cache()


_LOCAL: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}


def _best_device() -> str:
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def _told(folder: Path, load: Callable[[], Any]) -> Any:
    """What `load` gives; whatever goes wrong in it is told as a trouble of the checkpoint."""
    logging.set_verbosity_error()
    try:
        with warnings.catch_warnings(action="ignore"):
            return load()
    except Interrupted:
        raise
    except MemoryError:
        raise
    except torch.OutOfMemoryError as error:
        raise EngineError(
            Trouble.MEMORY,
            f"The device has no memory for the weights of {folder.name}: {_first_line(error)}.",
            "Use a smaller model, or close other programs that use the device.",
        ) from None
    except Exception as error:  # damaged files fail in every way there is
        raise EngineError(
            Trouble.MODEL,
            f"transformers {transformers.__version__} cannot load {folder.name}: "
            f"{_first_line(error)}.",
            "A file may be missing or damaged, or the model may need code of its own, which "
            "Sapwood does not run. Download all the files again, or choose another model.",
        ) from None


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__


def _check(config: Any, folder: Path) -> None:
    """Refuse what has no keys and values to share for each token of a path."""
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    if config.is_encoder_decoder or config.get_text_config() is not config:
        raise EngineError(
            Trouble.MODEL,
            f"{folder.name} does not only read and write text ({config.model_type}).",
            "Choose a text model.",
        )
    if not kinds <= {"full_attention", "sliding_attention"} or not _attends(config):
        raise EngineError(
            Trouble.MODEL,
            f"{folder.name} ({config.model_type}) keeps a state that the paths of a search "
            "cannot share.",
            "Choose a model with plain attention in every layer (Qwen2.5, Llama 3, Gemma 3 …).",
        )


def _attends(config: Any) -> bool:
    return bool(getattr(config, "num_attention_heads", 0)) and not hasattr(config, "state_size")


def _trained_context(config: Any) -> int:
    """Tokens a path may have; without those for which keys would have to be computed anew."""
    rope = getattr(config, "rope_parameters", None) or {}
    longest = int(config.max_position_embeddings)
    if rope.get("rope_type") in _STRETCHED:
        return int(rope.get("original_max_position_embeddings") or longest)
    return longest


def _template(tokenizer: Any) -> ChatTemplate:
    source = tokenizer.chat_template or ""
    if isinstance(source, dict):
        source = source.get("default", "")
    return ChatTemplate(source, bos=tokenizer.bos_token or "", eos=tokenizer.eos_token or "")


class _LoadingBar:
    """Has transformers tell of its progress, and stop, where it would draw a bar."""

    def __init__(self, progress: Callable[[float], bool]) -> None:
        self._progress = progress

    def __enter__(self) -> None:
        self._before = logging.set_tqdm_hook(self._bar)

    def __exit__(self, *_: object) -> None:
        logging.set_tqdm_hook(self._before)

    def _bar(self, factory: object, places: tuple[Any, ...], names: dict[str, Any]) -> Any:
        return self._told(list(places[0] if places else names.get("iterable", ())))

    def _told(self, items: Iterable[Any]) -> Iterator[Any]:
        items = list(items)
        for count, item in enumerate(items):
            if not self._progress(count / len(items)):
                raise Interrupted
            yield item
        if not self._progress(1.0):
            raise Interrupted
