"""The two ways out: data on standard output, everything else on standard error."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import TextIO

from app.errors import CommandError, ReaderGoneError
from app.exit_codes import ExitCode


def prepare() -> None:
    """Let no character of a model stop a write; what the encoding lacks becomes an escape.

    A stream that the caller has closed is replaced by one that holds nothing and keeps nothing.
    """
    if sys.stdin is None:
        sys.stdin = TextIOWrapper(BytesIO())
    if sys.stdout is None:
        sys.stdout = TextIOWrapper(BytesIO())
    if sys.stderr is None:
        sys.stderr = TextIOWrapper(BytesIO())
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def data(content: str | bytes) -> None:
    """Write text, or bytes as they are, to standard output, at once.

    Raises:
        ReaderGoneError: nobody reads it any more.
        CommandError: it could not be written.
    """
    try:
        if isinstance(content, bytes):
            sys.stdout.buffer.write(content)
        else:
            sys.stdout.write(content)
        sys.stdout.flush()
    except OSError as error:
        _drop(sys.stdout)
        if isinstance(error, BrokenPipeError):
            raise ReaderGoneError from error
        raise CommandError(
            ExitCode.STORAGE,
            f"Standard output could not be written ({error.strerror}). Part of the output is lost."
            " Make room or send it elsewhere.",
        ) from error


def narrate(line: str) -> None:
    """Write one line to standard error. A full disk there is no reason to lose the result.

    Raises:
        ReaderGoneError: nobody reads it any more.
    """
    try:
        sys.stderr.write(line + "\n")
        sys.stderr.flush()
    except OSError as error:
        _drop(sys.stderr)
        if isinstance(error, BrokenPipeError):
            raise ReaderGoneError from error


def is_screen(stream: TextIO) -> bool:
    """Whether the stream is a terminal that can move its cursor."""
    return stream.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")


def _drop(stream: TextIO) -> None:
    """Send what is still buffered nowhere, or the interpreter would fail on it when it ends."""
    with suppress(OSError, ValueError), Path(os.devnull).open("wb") as null:
        os.dup2(null.fileno(), stream.fileno())
