"""What Textual keeps of widgets that are gone."""

from __future__ import annotations

from textual._styles_cache import StylesCache


def forget_drawings() -> None:
    """Let go of the lines that removed widgets drew last.

    `StylesCache.get_inner_outer` remembers its last 1024 calls by their arguments. One of these is
    the cache itself, with all that its widget has drawn: some 17 MiB, of widgets of which most are
    gone. What is still needed takes a moment to be made again.
    """
    StylesCache.get_inner_outer.cache_clear()
