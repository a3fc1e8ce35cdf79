"""Conversations: made, added to, found, deleted and brought back."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from app.errors import CommandError
from app.exit_codes import ExitCode
from app.run_view import RunView
from app.store.database import Database
from app.store.records import Found, Message, Role, Session, State, title_of
from app.store.runs import result_of
from engine.places import runs_dir

_SESSION = """
    SELECT session.*, (SELECT count(*) FROM message WHERE message.session = session.id) AS messages
    FROM session
"""


def store_path() -> Path:
    """Where the user's conversations are: beside the logs of the runs that belong to them."""
    return runs_dir().parent / "sessions.db"


class Store:
    """The user's conversations.

    Every call that changes something has saved it when it returns. To be used by the thread that
    opened it.

    Raises:
        CommandError: (all calls) the file cannot be used, or there is no such conversation.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path or store_path()
        self._database = Database(self._path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._database.close()

    # --- Conversations ---

    def create(self, title: str = "") -> Session:
        """A new conversation; without a title, its first message will give it one."""
        now = _now()
        with self._database.writing() as connection:
            row = connection.execute(
                "INSERT INTO session (title, created, updated) VALUES (?, ?, ?) RETURNING id",
                (title, now, now),
            ).fetchone()
        return self.session(row["id"])

    def session(self, id: int) -> Session:
        """The conversation of that number, deleted or not."""
        # SQLite has no numbers beyond 64 bits, and refuses to look for one.
        rows = self._database.rows(f"{_SESSION} WHERE id = ?", id) if id < 1 << 63 else []
        if not rows:
            raise CommandError(
                ExitCode.USAGE,
                f"There is no session {id}. 'sapwood sessions' lists those there are.",
            )
        return Session(**rows[0])

    def sessions(self, *, deleted: bool = False, limit: int = -1) -> list[Session]:
        """All conversations, or all deleted ones, the latest first."""
        which = "IS NOT NULL" if deleted else "IS NULL"
        order = "deleted" if deleted else "updated"
        query = f"{_SESSION} WHERE deleted {which} ORDER BY {order} DESC, id DESC LIMIT ?"
        return [Session(**row) for row in self._database.rows(query, limit)]

    def rename(self, id: int, title: str) -> Session:
        return self._change(id, title=title)

    def delete(self, id: int) -> Session:
        """Put the conversation out of sight; nothing of it is lost."""
        return self._change(id, deleted=_now())

    def restore(self, id: int) -> Session:
        return self._change(id, deleted=None)

    def undo(self) -> Session | None:
        """Bring back the conversation that was deleted last, if there is one."""
        latest = self.sessions(deleted=True, limit=1)
        return self.restore(latest[0].id) if latest else None

    def _change(self, id: int, **values: object) -> Session:
        self.session(id)
        with self._database.writing() as connection:
            connection.execute(
                f"UPDATE session SET {_places(values)} WHERE id = :id", values | {"id": id}
            )
        return self.session(id)

    # --- Messages ---

    def add(
        self,
        session: int,
        role: Role,
        text: str,
        *,
        parent: int | None = None,
        settings: Mapping[str, Any] | None = None,
        log: Path | str | None = None,
        state: State = State.COMPLETE,
    ) -> Message:
        """Add a message, which becomes the end of the open branch.

        Args:
            parent: the message it follows; any may be followed by several. None begins anew.
            log: where the run that gives this message is logged.
        """
        title = self.session(session).title
        if parent is not None and self.message(parent).session != session:
            raise ValueError("a message follows one of the same session")
        now = _now()
        row = {
            "session": session,
            "parent": parent,
            "role": role.value,
            "text": text,
            "state": state.value,
            "created": now,
            "settings": msgspec.json.encode(dict(settings or {})).decode(),
            "log": self._short(log),
        }
        columns, places = ", ".join(row), ", ".join(f":{name}" for name in row)
        with self._database.writing() as connection:
            id = connection.execute(
                f"INSERT INTO message ({columns}) VALUES ({places}) RETURNING id", row
            ).fetchone()["id"]
            connection.execute(
                "UPDATE session SET head = ?, updated = ?, title = ? WHERE id = ?",
                (id, now, title or title_of(text), session),
            )
        return self.message(id)

    def update(
        self,
        id: int,
        *,
        text: str | None = None,
        state: State | None = None,
        answer: str | None = None,
        note: str | None = None,
    ) -> Message:
        """Change what is given of a message, such as one whose run goes on or has ended."""
        given = {"text": text, "state": state and state.value, "answer": answer, "note": note}
        values = {name: value for name, value in given.items() if value is not None}
        before = self.message(id)
        if values:
            with self._database.writing() as connection:
                connection.execute(
                    f"UPDATE message SET {_places(values)} WHERE id = :id", values | {"id": id}
                )
                connection.execute(
                    "UPDATE session SET updated = ? WHERE id = ?", (_now(), before.session)
                )
        return self.message(id)

    def record(self, id: int, view: RunView) -> Message:
        """Save what the run of a message has come to, while it goes on or at its end."""
        result = result_of(view)
        return self.update(
            id, text=result.text, state=result.state, answer=result.answer, note=result.note
        )

    def select(self, message: int) -> None:
        """Make the branch that ends with this message the open one."""
        session = self.message(message).session
        self._change(session, head=message)

    def message(self, id: int) -> Message:
        rows = self._database.rows("SELECT * FROM message WHERE id = ?", id)
        if not rows:
            raise CommandError(ExitCode.USAGE, f"There is no message {id}.")
        return self._message(rows[0])

    def messages(self, session: int) -> list[Message]:
        """All messages of all branches, in the order in which they were made."""
        self.session(session)
        query = "SELECT * FROM message WHERE session = ? ORDER BY id"
        return [self._message(row) for row in self._database.rows(query, session)]

    def path(self, message: int | None) -> list[Message]:
        """The branch from its first message to this one."""
        query = """
            WITH RECURSIVE branch AS (
                SELECT * FROM message WHERE id = ?
                UNION ALL
                SELECT message.* FROM message JOIN branch ON message.id = branch.parent
            )
            SELECT * FROM branch ORDER BY id
        """
        return [self._message(row) for row in self._database.rows(query, message)]

    def search(self, words: str, *, limit: int = 50) -> list[Found]:
        """The titles and messages that have all words, or words that begin so; best first."""
        query = " ".join('"{}"*'.format(word.replace('"', '""')) for word in words.split())
        if not query:
            return []
        found: list[Found] = []
        for index, column, join in (
            ("title_index", "NULL", "session.id = title_index.rowid"),
            ("text_index", "message.id", "session.id = message.session"),
        ):
            message = "JOIN message ON message.id = text_index.rowid" if column != "NULL" else ""
            rows = self._database.rows(
                f"""
                SELECT session.id AS session, {column} AS message,
                    snippet({index}, 0, '', '', '…', 12) AS excerpt
                FROM {index} {message} JOIN session ON {join}
                WHERE {index} MATCH ? AND session.deleted IS NULL
                ORDER BY {index}.rank LIMIT ?
                """,
                query,
                limit - len(found),
            )
            found += [
                Found(self.session(row["session"]), row["message"], row["excerpt"]) for row in rows
            ]
        return found

    def _message(self, row: sqlite3.Row) -> Message:
        values = dict(row)
        values["role"], values["state"] = Role(row["role"]), State(row["state"])
        values["settings"] = msgspec.json.decode(row["settings"])
        values["log"] = self._path.parent / row["log"] if row["log"] else None
        return Message(**values)

    def _short(self, log: Path | str | None) -> str | None:
        """The path from the folder of the store, if it is in there, so that both can move."""
        if log is None:
            return None
        path = Path(log).absolute()
        folder = self._path.parent.absolute()
        return (path.relative_to(folder) if path.is_relative_to(folder) else path).as_posix()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


def _places(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name} = :{name}" for name in values)
