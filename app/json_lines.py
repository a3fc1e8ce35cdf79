"""Reading a file with one JSON object a line, each with an id of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

from app.errors import CommandError
from app.exit_codes import ExitCode
from app.printable import one_line


class Item(Protocol):
    @property
    def id(self) -> str | int: ...


T = TypeVar("T", bound=Item)


def read_json_lines(path: Path, parse: Callable[[bytes, int], T]) -> tuple[list[T], list[str]]:
    """What the lines of a file say, and what is wrong with each of the others.

    Args:
        parse: makes an item of a line and its number; raises ValueError, as msgspec does.

    Raises:
        CommandError: it cannot be read.
    """
    try:
        lines = path.read_bytes().removeprefix(b"\xef\xbb\xbf").splitlines()
    except OSError as error:
        raise CommandError(
            ExitCode.USAGE, f"{path} cannot be read ({error.strerror}). Check the path."
        ) from error
    items: dict[str | int, T] = {}
    wrong: list[str] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            item = parse(line, number)
            if item.id in items:
                raise ValueError(f"the id {item.id!r} was there before")
            items[item.id] = item
        except RecursionError:
            wrong.append(f"line {number}: its brackets are nested too deeply")
        except ValueError as error:
            wrong.append(f"line {number}: {one_line(str(error))}")
    return list(items.values()), wrong
