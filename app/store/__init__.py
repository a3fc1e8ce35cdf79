"""Conversations, kept in one SQLite file in the user's data folder."""

from app.store.records import TITLE, Found, Message, Role, Session, State, title_of
from app.store.runs import as_far_as_logged, result_of, view_of
from app.store.store import Store, store_path

__all__ = [
    "TITLE",
    "Found",
    "Message",
    "Role",
    "Session",
    "State",
    "Store",
    "as_far_as_logged",
    "result_of",
    "store_path",
    "title_of",
    "view_of",
]
