"""The formats by name."""

from __future__ import annotations

from collections.abc import Callable

from app.export.document import Document
from app.export.html import html
from app.export.json import json
from app.export.markdown import markdown

_WRITERS: dict[str, Callable[[Document], str]] = {"markdown": markdown, "json": json, "html": html}

FORMATS = {
    ".md": "markdown",
    ".markdown": "markdown",
    ".txt": "markdown",
    ".json": "json",
    ".html": "html",
}
"""Which format a file's name asks for."""


def export(document: Document, format: str) -> str:
    """The document as a text in that format."""
    return _WRITERS[format](document)
