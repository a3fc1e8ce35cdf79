"""The file of results: one JSON object a line, each safe on the disk before the next is begun."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from io import FileIO
from pathlib import Path
from typing import Any, Protocol

import msgspec

from app import output
from app.errors import CommandError
from app.exit_codes import ExitCode
from app.problems import Problem

_FIRST = b'{"id":'
"""How every line of results begins."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one problem."""

    id: str | int
    problem: str
    answer: str | None = None
    correct: bool | None = None
    """None where no answer was expected."""
    score: float | None = None
    seconds: float = 0.0
    tokens: int = 0
    stop: str | None = None
    error: str | None = None
    """Why there is no result; such a problem is tried again next time."""
    settings: dict[str, Any] | None = None
    """What was asked for otherwise than by default; None in files of older versions."""


class Results(Protocol):
    """Where results go."""

    done: dict[str | int, Result]
    """By id, the newest of each; those that failed are not done."""

    def append(self, result: Result) -> None: ...


class StandardOutput:
    """Results as they come, for a pipe."""

    def __init__(self) -> None:
        self.done: dict[str | int, Result] = {}

    def append(self, result: Result) -> None:
        _note(self.done, result)
        output.data(msgspec.json.encode(result) + b"\n")


class ResultFile:
    """A file that is gone on with. A last line that was torn is taken off.

    Args:
        settings: what is asked for otherwise than by default, which the results there must be of.
        default: all settings by default.

    Raises:
        CommandError: the file cannot be used, or holds something else.
    """

    def __init__(
        self,
        path: Path,
        problems: Iterable[Problem],
        settings: Mapping[str, Any],
        *,
        default: Mapping[str, Any],
    ) -> None:
        self.done: dict[str | int, Result] = {}
        self._path = path
        self._settings = settings
        self._default = default
        try:
            self._file = FileIO(path, "ab+")
        except OSError as error:
            raise self._failure(error) from error
        self._on_disk = stat.S_ISREG(os.fstat(self._file.fileno()).st_mode)
        if self._on_disk:
            torn = self._load()
            self._check(problems)
            self._repair(torn)

    def append(self, result: Result) -> None:
        _note(self.done, result)
        self._write(msgspec.json.encode(result) + b"\n")

    def _load(self) -> bytes:
        """Read the results there are; gives the last line if it was not written to its end."""
        self._file.seek(0)
        *lines, last = self._file.readall().split(b"\n")
        for number, line in enumerate(lines, 1):
            try:
                _note(self.done, msgspec.json.decode(line, type=Result))
            except msgspec.DecodeError as error:
                raise self._foreign(number) from error
        if not (last.startswith(_FIRST) or _FIRST.startswith(last)):
            raise self._foreign(len(lines) + 1)
        return last

    def _repair(self, torn: bytes) -> None:
        """Take off what is torn; its problem is solved again."""
        if torn:
            try:
                self._file.truncate(self._file.tell() - len(torn))
            except OSError as error:
                raise self._failure(error) from error

    def _check(self, problems: Iterable[Problem]) -> None:
        for problem in problems:
            result = self.done.get(problem.id)
            if result is not None and result.problem != problem.text:
                raise CommandError(
                    ExitCode.USAGE,
                    f"{self._path} has another problem under the id {problem.id!r}, so its results"
                    " are of another file. Choose another --out.",
                )
            if result is not None and result.settings is not None:
                self._check_settings(result.settings)

    def _check_settings(self, before: Mapping[str, Any]) -> None:
        was, now = ({**self._default, **settings} for settings in (before, self._settings))
        changed = [
            f"--{name.replace('_', '-')} was {_text(was.get(name))} and is {_text(now.get(name))}"
            for name in {**now, **was}
            if was.get(name) != now.get(name)
        ]
        if changed:
            raise CommandError(
                ExitCode.USAGE,
                f"The results in {self._path} were found with other settings: "
                f"{'; '.join(changed)}. Choose another --out, or the same settings.",
            )

    def _write(self, line: bytes) -> None:
        try:
            while line:
                line = line[self._file.write(line) :]
            if self._on_disk:
                os.fsync(self._file.fileno())
        except OSError as error:
            raise self._failure(error) from error

    def _foreign(self, number: int) -> CommandError:
        return CommandError(
            ExitCode.USAGE,
            f"{self._path} line {number} is not a result. Nothing is added to a file that holds"
            " something else; choose another --out.",
        )

    def _failure(self, error: OSError) -> CommandError:
        return CommandError(
            ExitCode.STORAGE,
            f"{self._path} could not be written ({error.strerror}). The results before are in it."
            " Make room or choose another --out, and run the same command again to go on.",
        )


def _text(value: object) -> str:
    return "none" if value is None else str(value)


def _note(done: dict[str | int, Result], result: Result) -> None:
    if result.error is None:
        done[result.id] = result
