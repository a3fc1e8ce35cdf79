"""The colours. What they tell is always told by a sign or a word as well."""

from __future__ import annotations

from textual.theme import Theme

DARK = Theme(
    name="sapwood-dark",
    primary="#8fbf6a",
    secondary="#6f9fb5",
    accent="#d9a860",
    warning="#d9a860",
    error="#d9705f",
    success="#8fbf6a",
    foreground="#dcd7c9",
    background="#16170f",
    surface="#1d1f16",
    panel="#272a1e",
    dark=True,
)
LIGHT = Theme(
    name="sapwood-light",
    primary="#3f6b1f",
    secondary="#1f5f7a",
    accent="#8a5a00",
    warning="#8a5a00",
    error="#a32a1a",
    success="#3f6b1f",
    foreground="#26281f",
    background="#faf8f1",
    surface="#f1eee2",
    panel="#e5e1d1",
    dark=False,
)
CONTRAST = Theme(
    name="sapwood-contrast",
    primary="#ffff00",
    secondary="#00ffff",
    accent="#ffff00",
    warning="#ffff00",
    error="#ff8080",
    success="#00ff00",
    foreground="#ffffff",
    background="#000000",
    surface="#000000",
    panel="#1a1a1a",
    dark=True,
    text_alpha=1.0,
)
THEMES = (DARK, LIGHT, CONTRAST)
