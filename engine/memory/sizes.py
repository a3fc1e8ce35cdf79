"""Sizes in bytes, read and written as people do: 8G, 7.9 GiB."""

from __future__ import annotations

import re

MIB = 1 << 20
GIB = 1 << 30

_UNITS = {"": 1, "k": 1 << 10, "m": MIB, "g": GIB, "t": 1 << 40}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?\s*", re.IGNORECASE)


def parse_size(text: str) -> int:
    """Bytes of a size such as `6G`, `6.5 GiB` or `900M`; units are powers of 1024.

    Raises:
        ValueError: it is no size.
    """
    found = _SIZE.fullmatch(text)
    if found is None:
        raise ValueError(f"'{text}' is not a size such as 6G or 900M")
    number, unit = found.groups()
    return int(float(number) * _UNITS[unit.lower()])


def size_text(size: float) -> str:
    """`7.9 GiB`, `512 MiB`."""
    if abs(size) >= GIB:
        return f"{size / GIB:.1f} GiB"
    return f"{size / MIB:.0f} MiB"
