"""The file: opened, brought to the newest version, read and written in transactions."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from app.errors import CommandError
from app.exit_codes import ExitCode
from app.printable import one_line
from app.store.schema import MIGRATIONS, Migration

PATIENCE = 10.0
"""Seconds to wait for another instance that is writing."""


class Database:
    """A connection to the file, which is made if there is none.

    What was committed survives the end of the process, however it ends. Several instances may
    have the file open: each writes in its turn.

    Args:
        migrations: all versions there are.

    Raises:
        CommandError: the file cannot be used.
    """

    def __init__(self, path: Path, migrations: Sequence[Migration] = MIGRATIONS) -> None:
        self._path = path
        with self._told():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)
            try:
                self._open(migrations)
            except BaseException:
                self._connection.close()
                raise

    def close(self) -> None:
        self._connection.close()

    def rows(self, query: str, *values: object) -> list[sqlite3.Row]:
        """The rows of a query.

        Raises:
            CommandError: the file cannot be read.
        """
        with self._told():
            return self._connection.execute(query, values).fetchall()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """All that is done in the block is done, or nothing if it fails.

        Raises:
            CommandError: the file cannot be written.
        """
        with self._told(), self._transaction():
            yield self._connection

    def _open(self, migrations: Sequence[Migration]) -> None:
        connection = self._connection
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA journal_mode = WAL")
        # Not even a power cut may take back what the user has seen saved.
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        if self._version() == len(migrations):
            return
        with self._transaction():  # one instance alone does it; the others find it done
            version = self._version()
            if version > len(migrations):
                raise CommandError(
                    ExitCode.STORAGE,
                    f"{self._path} was written by a newer version of Sapwood, so this one leaves"
                    " it alone. Update Sapwood, or name another folder in SAPWOOD_HOME.",
                )
            if version:
                self._copy(version)
            for number, migration in enumerate(migrations[version:], version + 1):
                for statement in migration:
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {number}")

    def _version(self) -> int:
        return self._connection.execute("PRAGMA user_version").fetchone()[0]

    def _copy(self, version: int) -> None:
        """Keep the file as it was before it is changed."""
        copy = self._path.with_name(f"{self._path.name}.version-{version}")
        copy.unlink(missing_ok=True)
        with closing(sqlite3.connect(self._path)) as source, closing(sqlite3.connect(copy)) as to:
            source.backup(to)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise CommandError(
                ExitCode.STORAGE,
                f"The conversations in {self._path} cannot be used ({one_line(str(error))})."
                " Make room, or check the file and its folder; SAPWOOD_HOME may name another.",
            ) from error
