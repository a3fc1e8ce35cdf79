"""A file of results: one JSON object a line, each safe on the disk before the next is begun."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Mapping
from io import FileIO
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import msgspec

from app import output
from app.errors import CommandError
from app.exit_codes import ExitCode
from app.json_lines import Item

_FIRST = b'{"id":'
_BEGINNING = re.compile(rb'\{"id":(["\d-].*)?', re.DOTALL)
"""How every line of results begins."""
_NOT_JSON = (ValueError, RecursionError)
"""What decoding raises, of a line that is too deep as well."""


class Row(Protocol):
    """What became of one item; a msgspec struct whose first field is the id."""

    command: ClassVar[str]
    """What writes such rows."""

    @property
    def id(self) -> str | int: ...

    @property
    def error(self) -> str | None:
        """Why there is no result; such an item is tried again next time."""
        ...

    @property
    def settings(self) -> Mapping[str, Any] | None:
        """By the names of the options, what it was found with; None where it is not known."""
        ...

    def difference(self, item: Any, /) -> str:
        """What the item of the same id has otherwise; empty where the row is of that item."""
        ...


R = TypeVar("R", bound=Row)


class Results(Protocol[R]):
    """Where results go."""

    done: dict[str | int, R]
    """By id, the newest of each; those that failed are not done."""

    def append(self, row: R) -> None: ...


class StandardOutput(Generic[R]):
    """Results as they come, for a pipe."""

    def __init__(self) -> None:
        self.done: dict[str | int, R] = {}

    def append(self, row: R) -> None:
        _note(self.done, row)
        output.data(msgspec.json.encode(row) + b"\n")


class ResultFile(Generic[R]):
    """A file that is gone on with. A last line that was torn is taken off.

    Args:
        kind: of the rows.
        items: what results are wanted of.
        settings: by the names of the options, what they are wanted with; results with others are
            not added to.
        default: what settings are where a row, or `settings`, does not say.

    Raises:
        CommandError: the file cannot be used, or holds something else.
    """

    def __init__(
        self,
        path: Path,
        kind: type[R],
        items: Iterable[Item],
        settings: Mapping[str, Any],
        *,
        default: Mapping[str, Any],
    ) -> None:
        self.done: dict[str | int, R] = {}
        self._path = path
        self._kind = kind
        try:
            self._file = FileIO(path, "ab+")
        except OSError as error:
            raise self._failure(error) from error
        # What is no file on a disk, a pipe or a device, has nothing before and may have no end.
        self._on_disk = stat.S_ISREG(os.fstat(self._file.fileno()).st_mode)
        if self._on_disk:
            torn = self._load()
            self._check_items(items)
            self._check_settings(default, {**default, **settings})
            self._repair(torn)

    def append(self, row: R) -> None:
        _note(self.done, row)
        self._write(msgspec.json.encode(row) + b"\n")

    def _load(self) -> bytes:
        """Read the results there are; gives the last line if it was not written to its end."""
        self._file.seek(0)
        *lines, last = self._file.readall().split(b"\n")
        for number, line in enumerate(lines, 1):
            row = self._row(line)
            if row is None:
                raise self._foreign(number)
            _note(self.done, row)
        if not self._may_be_torn(last):
            raise self._foreign(len(lines) + 1)
        return last

    def _row(self, line: bytes) -> R | None:
        try:
            return msgspec.json.decode(line, type=self._kind)
        except _NOT_JSON:
            return None

    def _may_be_torn(self, last: bytes) -> bool:
        """Whether it is the beginning of a row, or nothing."""
        if not (_BEGINNING.fullmatch(last) or _FIRST.startswith(last)):
            return False
        try:
            msgspec.json.decode(last)
        except _NOT_JSON:
            return True
        return self._row(last) is not None

    def _repair(self, torn: bytes) -> None:
        """Take off what is torn; there will be a whole row of it."""
        if torn:
            try:
                self._file.truncate(self._file.tell() - len(torn))
            except OSError as error:
                raise self._failure(error) from error

    def _check_items(self, items: Iterable[Item]) -> None:
        for item in items:
            row = self.done.get(item.id)
            if row is not None and (other := row.difference(item)):
                raise CommandError(
                    ExitCode.USAGE,
                    f"{self._path} has another {other} under the id {item.id!r}, so its results"
                    " are of another file. Choose another --out.",
                )

    def _check_settings(self, default: Mapping[str, Any], now: Mapping[str, Any]) -> None:
        for row in self.done.values():
            if row.settings is None:
                continue
            was = {**default, **row.settings}
            changed = [
                f"--{name.replace('_', '-')} was {_text(was.get(name))} "
                f"and is {_text(now.get(name))}"
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
            while line:  # a nearly full disk takes a part
                line = line[self._file.write(line) :]
            if self._on_disk:
                os.fsync(self._file.fileno())
        except OSError as error:
            raise self._failure(error) from error

    def _foreign(self, number: int) -> CommandError:
        return CommandError(
            ExitCode.USAGE,
            f"{self._path} line {number} is not a result of '{self._kind.command}'. Nothing is"
            " added to a file that holds something else; choose another --out.",
        )

    def _failure(self, error: OSError) -> CommandError:
        return CommandError(
            ExitCode.STORAGE,
            f"{self._path} could not be written ({error.strerror}). The results before are in it."
            " Make room or choose another --out, and run the same command again to go on.",
        )


def _text(value: object) -> str:
    return "none" if value is None else str(value)


def _note(done: dict[str | int, R], row: R) -> None:
    if row.error is None:
        done[row.id] = row
