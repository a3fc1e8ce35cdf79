"""Lines of a TOML file, which a parser forgets and an error message needs."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any

Keys = tuple[str, ...]


def line_of(text: str, keys: Keys) -> int | None:
    """The line, counted from 1, where a key is set or its table begins; else that of the nearest
    table around it.

    Args:
        text: valid TOML.
    """
    found = None
    deepest = 0
    for line, path in _statements(text):
        common = _common(path, keys)
        if common == len(keys):
            return line
        if common == len(path) > deepest:
            found, deepest = line, common
    return found


def _statements(text: str) -> Iterator[tuple[int, Keys]]:
    """Each table header and each assignment: its first line and its full key."""
    table: Keys = ()
    begun = 0
    waiting: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not waiting:
            begun = number
        waiting.append(line)
        try:
            parsed = tomllib.loads("\n".join(waiting))
        except tomllib.TOMLDecodeError:
            continue  # a value that goes on in the next line
        waiting.clear()
        if not parsed:
            continue
        if line.lstrip().startswith("["):
            table = _first(parsed)
            yield begun, table
        else:
            yield begun, table + _first(parsed)


def _first(parsed: dict[str, Any]) -> Keys:
    """The key of the only statement; the keys of an inline table are not looked into."""
    keys: list[str] = []
    value: Any = parsed
    while isinstance(value, dict | list) and len(value) == 1:
        if isinstance(value, list):  # an array of tables
            (value,) = value
            continue
        ((key, value),) = value.items()
        keys.append(key)
    return tuple(keys)


def _common(one: Keys, other: Keys) -> int:
    count = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        count += 1
    return count
