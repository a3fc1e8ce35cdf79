"""Model text as it is shown. What is stored and copied is always the source.

Formulas are rendered where that is known to be right, and stay as they were written elsewhere.
"""

from __future__ import annotations

import re

from app.maths import Piece, render, split
from app.printable import one_line, printable

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~])")
"""What Markdown would take for its own in a rendered formula."""


_OPTION = re.compile(r"(?<!\S)--(?=[a-z])")


def without_options(text: str) -> str:
    """What the engine advises, for where there is no command line: settings have the names of its
    options."""
    return _OPTION.sub("", text)


def as_markdown(text: str, *, raw: bool) -> str:
    """Text for the Markdown widget: formulas on lines of their own become blocks."""
    return "".join(_markdown(piece, raw) for piece in split(printable(text)))


def as_text(text: str, *, raw: bool) -> str:
    """Text for a widget that shows it as it is."""
    return "".join(_plain(piece, raw, display=piece.display) for piece in split(printable(text)))


def as_line(text: str, *, raw: bool) -> str:
    """Text for one line."""
    return one_line("".join(_plain(piece, raw, display=False) for piece in split(text)))


def _markdown(piece: Piece, raw: bool) -> str:
    if piece.latex is None:
        return piece.source
    shown = None if raw else render(piece.latex, display=piece.display)
    if not piece.display:
        return f"`{piece.source}`" if shown is None else _SPECIAL.sub(r"\\\1", shown)
    language, body = ("latex", piece.source) if shown is None else ("text", shown)
    return f"\n\n```{language}\n{body}\n```\n\n"


def _plain(piece: Piece, raw: bool, *, display: bool) -> str:
    if piece.latex is None or raw:
        return piece.source
    shown = render(piece.latex, display=display)
    if shown is None:
        return piece.source
    return f"\n{shown}\n" if display else shown
