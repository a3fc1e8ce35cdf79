"""Where the logs of runs are, and what they hold."""

from __future__ import annotations

import errno
import os
import secrets
import shlex
import time
from collections.abc import Iterator
from pathlib import Path

from app import output
from app.errors import CommandError
from app.exit_codes import ExitCode
from app.printable import one_line
from engine.errors import EngineError
from engine.protocol import AnyEvent, RunStarted, SolveRequest


def log_folder() -> Path | None:
    """The folder for the logs of runs, or None, told to the user, where none can be kept."""
    from engine.places import runs_dir

    try:
        folder = runs_dir()
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise PermissionError(errno.EACCES, f"{folder} is not writable")
    except OSError as error:
        output.narrate(f"warning: no run log is kept, so nothing can be resumed ({error.strerror})")
        return None
    return folder


def new_log(folder: Path | None) -> str | None:
    """A name for the log of a new run."""
    if folder is None:
        return None
    return str(folder / f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}.jsonl")


def how_to_go_on(log: str | Path) -> str:
    """What to type to go on with the run of a log."""
    return f"To go on: sapwood solve --resume {shlex.quote(str(log))}"


def events_in(path: Path) -> Iterator[AnyEvent]:
    """The events of a log; reading goes on as they are taken.

    Raises:
        CommandError: the file is not a run log, or a line in its middle is damaged.
    """
    from engine.client import read_run

    try:
        yield from read_run(path)
    except EngineError as error:
        raise CommandError(ExitCode.USAGE, one_line(f"{error.message} {error.advice}")) from error


def request_in(path: Path) -> SolveRequest:
    """What the run in a log was asked.

    Raises:
        CommandError: the file is not a run log.
    """
    first = next(events_in(path))
    assert isinstance(first, RunStarted)  # the reader sees to that
    return first.request
