"""Checkpoints on the hub: the files that a conversion needs, and what their tensors take."""

from __future__ import annotations

import re
from collections.abc import Callable

from engine.errors import EngineError
from engine.hub import store
from engine.hub.download import check_room, download
from engine.hub.messages import Fetched, Progress
from engine.hub.remote import listed
from engine.protocol.events import Trouble

_ABOUT = re.compile(
    r"(config|tokenizer|tokenizer_config|special_tokens_map|added_tokens|vocab)\.json"
    r"|merges\.txt|tokenizer\.model|chat_template\.\w+|reward_head\.pt"
)
_SAFE = re.compile(r"[\w.-]+\.safetensors(\.index\.json)?")
_PICKLED = re.compile(r"pytorch_model[\w.-]*\.bin(\.index\.json)?")


def needed(repository: str) -> dict[str, int]:
    """The files that make up a checkpoint, with their sizes; safetensors rather than pickles.

    Raises:
        EngineError: there is no checkpoint, or the hub cannot be reached.
    """
    files = listed(repository)
    weights = [file for file in files if _SAFE.fullmatch(file)]
    weights = weights or [file for file in files if _PICKLED.fullmatch(file)]
    if not weights or "config.json" not in files:
        raise EngineError(
            Trouble.MODEL,
            f"{repository} has no checkpoint: a config.json and weights are expected.",
            "Name a repository that has them, not one of GGUF files.",
        )
    about = [file for file in files if _ABOUT.fullmatch(file)]
    return {file: files[file] for file in (*about, *weights)}


def download_checkpoint(repository: str, tell: Callable[[Progress], None]) -> Fetched:
    """Have all files of a checkpoint in one folder; each is checked and placed by itself.

    Raises:
        EngineError: it cannot be had; what came of it is kept.
    """
    sizes = needed(repository)
    check_room(repository, sum(_missing(repository, file, sizes[file]) for file in sizes))
    total, before, came, checked = sum(sizes.values()), 0, 0, True

    def advance(progress: Progress) -> None:
        tell(Progress(progress.file, before + progress.done, total, progress.note))

    for file, size in sizes.items():
        fetched = download(repository, file, advance)
        if fetched.path != store.stored(repository, file):
            store.adopt(fetched.path, repository, file)
        before += size
        came += fetched.bytes
        checked = checked and fetched.checked
    return Fetched(store.stored(repository, ""), came, checked)


def _missing(repository: str, file: str, size: int) -> int:
    """Bytes of a file that are still to come."""
    if store.find(repository, file) is not None:
        return 0
    part = store.partial(repository, file)
    return size - (part.stat().st_size if part.is_file() else 0)
