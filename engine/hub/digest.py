"""Checksums as the hub gives them."""

from __future__ import annotations

import hashlib
from typing import Protocol


class Digest(Protocol):
    def update(self, data: bytes, /) -> object: ...
    def hexdigest(self) -> str: ...


def digest(checksum: str, size: int) -> Digest | None:
    """What computes a checksum of the kind that is given; None where none is given.

    Args:
        checksum: SHA-256 for large files, for small ones the SHA-1 that git names them by.
        size: bytes of the whole file.
    """
    match len(checksum):
        case 64:
            return hashlib.sha256()
        case 40:
            return hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
        case _:
            return None
