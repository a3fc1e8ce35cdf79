"""Conversations and runs as Markdown, JSON and pages of their own."""

from app.export.document import Document, Turn, document_of_run, document_of_session
from app.export.formats import FORMATS, export

__all__ = ["FORMATS", "Document", "Turn", "document_of_run", "document_of_session", "export"]
