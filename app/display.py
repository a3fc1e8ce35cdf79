"""Which way to show a run."""

from __future__ import annotations

import sys
from enum import Enum, auto

from app import output
from app.render import JsonLines, Plain, Quiet, Renderer
from app.run_view import RunView


class Display(Enum):
    """What the user asked to see."""

    AUTO = auto()
    """The live tree on a terminal, plain lines elsewhere."""
    JSON = auto()
    QUIET = auto()


def renderer_for(display: Display, view: RunView, *, speed: float = 1.0) -> Renderer:
    """The renderer that does it here."""
    if display is Display.JSON:
        return JsonLines()
    if display is Display.QUIET:
        return Quiet()
    if not output.is_screen(sys.stderr):
        return Plain(view)
    from app.live import LiveTree
    from app.terminal import terminal

    return LiveTree(view, terminal(), speed)


def print_answer(view: RunView) -> None:
    """The result, on standard output."""
    from app.printable import printable

    if view.answered is not None and view.answered.answer:
        output.data(printable(view.answered.answer) + "\n")
