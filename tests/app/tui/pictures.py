"""Screens as text that a reviewer can read and a diff can show."""

from __future__ import annotations

from itertools import groupby
from string import ascii_letters

from rich.style import Style
from textual.app import App


def as_text(app: App[None]) -> str:
    """What stands on the screen."""
    strips = app.screen._compositor.render_strips()
    lines = ("".join(segment.text for segment in strip).rstrip() for strip in strips)
    return "\n".join(lines) + "\n"


def as_styles(app: App[None]) -> str:
    """How it is coloured: a line a row of runs such as `12a 3b`, and what each letter means."""
    letters: dict[str, str] = {}
    rows = []
    for strip in app.screen._compositor.render_strips():
        segments = [(_words(s.style), len(s.text)) for s in strip if s.text]
        runs = [
            (words, sum(length for _, length in run))
            for words, run in groupby(segments, key=lambda segment: segment[0])
        ]
        for words, _ in runs:
            letters.setdefault(words, ascii_letters[len(letters)])
        rows.append(" ".join(f"{count}{letters[words]}" for words, count in runs))
    legend = [f"{letter} {words}" for words, letter in letters.items()]
    return "\n".join([*legend, "", *rows]) + "\n"


def _words(style: Style | None) -> str:
    if style is None:
        return "plain"
    names = ("bold", "dim", "italic", "underline", "reverse")
    attributes = [name for name in names if getattr(style, name)]
    colours = [
        colour.get_truecolor().hex if colour is not None else "default"
        for colour in (style.color, style.bgcolor)
    ]
    return " ".join([f"{colours[0]} on {colours[1]}", *attributes])
