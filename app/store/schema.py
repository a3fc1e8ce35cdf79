"""The tables, as numbered migrations. One that was released never changes again."""

from __future__ import annotations

Migration = tuple[str, ...]
"""Statements, run in one transaction."""

_MESSAGES_AND_SEARCH: Migration = (
    """
    CREATE TABLE session (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        title TEXT NOT NULL,
        created TEXT NOT NULL,
        updated TEXT NOT NULL,
        deleted TEXT,
        head INTEGER REFERENCES message (id)
    )
    """,
    """
    CREATE TABLE message (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        session INTEGER NOT NULL REFERENCES session (id),
        parent INTEGER REFERENCES message (id),
        role TEXT NOT NULL,
        text TEXT NOT NULL,
        state TEXT NOT NULL,
        created TEXT NOT NULL,
        settings TEXT NOT NULL,
        log TEXT,
        answer TEXT,
        note TEXT NOT NULL DEFAULT ''
    )
    """,
    "CREATE INDEX message_of_session ON message (session)",
    # The indexes for searching hold no text of their own; triggers keep them in step.
    "CREATE VIRTUAL TABLE title_index USING fts5(title, content='session', content_rowid='id')",
    "CREATE VIRTUAL TABLE text_index USING fts5(text, content='message', content_rowid='id')",
    """
    CREATE TRIGGER session_added AFTER INSERT ON session BEGIN
        INSERT INTO title_index (rowid, title) VALUES (new.id, new.title);
    END
    """,
    """
    CREATE TRIGGER session_renamed AFTER UPDATE OF title ON session BEGIN
        INSERT INTO title_index (title_index, rowid, title) VALUES ('delete', old.id, old.title);
        INSERT INTO title_index (rowid, title) VALUES (new.id, new.title);
    END
    """,
    """
    CREATE TRIGGER message_added AFTER INSERT ON message BEGIN
        INSERT INTO text_index (rowid, text) VALUES (new.id, new.text);
    END
    """,
    """
    CREATE TRIGGER message_changed AFTER UPDATE OF text ON message BEGIN
        INSERT INTO text_index (text_index, rowid, text) VALUES ('delete', old.id, old.text);
        INSERT INTO text_index (rowid, text) VALUES (new.id, new.text);
    END
    """,
)

MIGRATIONS: tuple[Migration, ...] = (_MESSAGES_AND_SEARCH,)
"""The n-th takes the file from version n - 1 to n."""
