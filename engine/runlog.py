"""Reading run logs: JSON lines, one event each, the first of them `RunStarted`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from engine.errors import EngineError
from engine.protocol import VERSION, AnyEvent, RunStarted, Trouble, decode_event

_FIRST = b'{"type":"run_started"'
"""How every run log begins."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One event of a log and the byte offset at which its line ends."""

    event: AnyEvent
    end: int


def read_run(path: str | Path) -> Iterator[AnyEvent]:
    """The events of the run log at `path`, in order.

    A torn last line, as a crash or a full disk leaves it, is left out.

    Raises:
        EngineError: the file cannot be read or is not a run log of this version (at once), or a
            line in the middle is damaged (after the events before it).
    """
    entries = read_entries(path)
    first = next(entries, None)
    if first is None:
        raise _not_a_log(path, "it is empty")
    return _events(first, entries)


def read_entries(path: str | Path) -> Iterator[Entry]:
    """Like `read_run`, with the place of each event; a file without one whole line gives none."""
    try:
        if not Path(path).is_file() and Path(path).exists():
            raise _not_a_log(path, "it is not a file")
        with Path(path).open("rb") as file:
            yield from _entries(path, file)
    except OSError as error:
        raise EngineError(
            Trouble.STORAGE, f"The run log {path} cannot be read: {error.strerror or error}."
        ) from error


def _events(first: Entry, rest: Iterator[Entry]) -> Iterator[AnyEvent]:
    yield first.event
    for entry in rest:
        yield entry.event


def _entries(path: str | Path, lines: Iterator[bytes]) -> Iterator[Entry]:
    end = 0
    damaged: int | None = None
    for number, line in enumerate(lines, start=1):
        if number == 1 and not _begins_a_log(line):
            raise _not_a_log(path, "it does not begin with the start of a run")
        if damaged is not None:
            raise EngineError(
                Trouble.USAGE,
                f"Line {damaged} of the run log {path} is damaged.",
                "A replay shows what comes before that line, but the run cannot be resumed.",
            )
        event = _decode(line)
        if event is None:
            damaged = number  # torn if it turns out to be the last line
            continue
        if isinstance(event, RunStarted) and event.version != VERSION:
            raise _not_a_log(path, f"it has version {event.version}, and this program {VERSION}")
        end += len(line)
        yield Entry(event, end)


def _decode(line: bytes) -> AnyEvent | None:
    """The event of a line; None if the line is torn or damaged."""
    if not line.endswith(b"\n"):
        return None
    try:
        return decode_event(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # nested without end
        return None


def _begins_a_log(line: bytes) -> bool:
    return line.startswith(_FIRST) or (not line.endswith(b"\n") and _FIRST.startswith(line))


def _not_a_log(path: str | Path, why: str) -> EngineError:
    return EngineError(
        Trouble.USAGE, f"{path} is not a run log that can be read here: {why}.", "Check the path."
    )
