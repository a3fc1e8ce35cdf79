"""What the hub says of a file, and streams of its bytes.

All requests go through `huggingface_hub`, which knows the user's token and proxy; it is imported
when the first is made. The token stays in there: nothing of it comes back out.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from engine.hub.problems import explained
from engine.models.gguf import Header, parse_header

if TYPE_CHECKING:
    import httpx2

_HEADER = 64 << 20
"""Bytes of a file in which its header ends for sure; they are not read beyond that."""


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file of the hub as it is in one commit."""

    repository: str
    file: str
    commit: str
    size: int
    checksum: str
    """SHA-256 or git's SHA-1 in hexadecimal; empty where the hub has neither."""


class _Entry(msgspec.Struct):
    """One line of a repository's listing."""

    type: str
    path: str
    size: int = 0


def look_up(repository: str, file: str) -> RemoteFile:
    """Ask the hub for a file.

    Raises:
        EngineError: there is none, it may not be had, or the hub cannot be reached.
    """
    from huggingface_hub import get_hf_file_metadata

    try:
        found = get_hf_file_metadata(_url(repository, file, None), endpoint=endpoint())
        if found.size is None:
            raise ValueError("it does not say how large the file is")
    except Exception as error:
        raise explained(error, repository, file, endpoint()) from None
    checksum = (found.etag or "").lower()
    known = len(checksum) in (40, 64) and not set(checksum) - set("0123456789abcdef")
    return RemoteFile(
        repository, file, found.commit_hash or "main", found.size, checksum if known else ""
    )


def listed(repository: str) -> dict[str, int]:
    """The files of a repository, but for its folders, with their sizes.

    Raises:
        EngineError: there is none, it may not be had, or the hub cannot be reached.
    """
    from huggingface_hub import constants, get_session
    from huggingface_hub.utils import build_hf_headers, hf_raise_for_status

    try:
        response = get_session().get(
            f"{endpoint()}/api/models/{repository}/tree/main",
            headers=build_hf_headers(),
            timeout=constants.HF_HUB_ETAG_TIMEOUT,
        )
        hf_raise_for_status(response)
        entries = msgspec.json.decode(response.content, type=list[_Entry])
    except Exception as error:
        raise explained(error, repository, "", endpoint()) from None
    return {entry.path: entry.size for entry in entries if entry.type == "file"}


@contextmanager
def stream(of: RemoteFile, start: int, stop: int | None = None) -> Iterator[httpx2.Response]:
    """The answer to a request for the bytes from `start` to before `stop`, or to the end.

    Raises:
        Exception: as huggingface_hub and its HTTP client do.
    """
    from huggingface_hub import constants, get_session
    from huggingface_hub.utils import build_hf_headers, hf_raise_for_status

    headers = build_hf_headers() | {"Accept-Encoding": "identity"}
    if start or stop is not None:
        headers["Range"] = f"bytes={start}-{'' if stop is None else stop - 1}"
    with get_session().stream(
        "GET",
        _url(of.repository, of.file, of.commit),
        headers=headers,
        timeout=constants.HF_HUB_DOWNLOAD_TIMEOUT,
    ) as response:
        hf_raise_for_status(response)
        yield response


def header(of: RemoteFile) -> Header:
    """The header of a GGUF file; no more of the file is fetched than it takes.

    Raises:
        EngineError: it cannot be had, or is none.
    """
    try:
        with stream(of, 0, min(of.size, _HEADER)) as response:
            return parse_header(Forward(response, _HEADER), of.size, of.file)
    except Exception as error:
        raise explained(error, of.repository, of.file, endpoint()) from None


def endpoint() -> str:
    """Address of the hub, or of the mirror that `HF_ENDPOINT` names."""
    from huggingface_hub import constants

    return os.environ.get("HF_ENDPOINT", constants.ENDPOINT).rstrip("/")


def _url(repository: str, file: str, commit: str | None) -> str:
    from huggingface_hub import hf_hub_url

    return hf_hub_url(repository, file, revision=commit, endpoint=endpoint())


class Forward:
    """A stream of bytes as a file that is read from beginning to end.

    Args:
        limit: bytes after which no more is read, whatever a server sends.
    """

    def __init__(self, response: httpx2.Response, limit: int) -> None:
        self._chunks = response.iter_bytes()
        self._limit = limit
        self._held = b""
        self._place = 0

    def read(self, count: int) -> bytes:
        parts = []
        while count > 0 and (self._held or self._more()):
            part, self._held = self._held[:count], self._held[count:]
            parts.append(part)
            count -= len(part)
            self._place += len(part)
        return b"".join(parts)

    def seek(self, place: int) -> None:
        """Go forward to a place."""
        while self._place < place and (self._held or self._more()):
            skipped = min(place - self._place, len(self._held))
            self._held = self._held[skipped:]
            self._place += skipped

    def _more(self) -> bool:
        self._held = next(self._chunks, b"") if self._place < self._limit else b""
        return bool(self._held)
